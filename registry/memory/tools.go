package memory

import (
	"encoding/json"

	"github.com/agentd/agentd/registry"
)

// The keys of the tools.
const (
	remember    = "remember"
	searchNotes = "search_notes"
	getNote     = "get_note"
	listNotes   = "list_notes"
	forgetNote  = "forget_note"
)

// What schemas share. A note's text is bounded by the configuration; its tags here.
const (
	idSchema   = `{"type": "integer", "minimum": 1, "description": "the number of the note"}`
	tagSchema  = `{"type": "string", "minLength": 1, "maxLength": 64}`
	tagsSchema = `{"type": "array", "maxItems": 16, "uniqueItems": true, "items": ` + tagSchema + `}`
	timeSchema = `{"type": "string", "format": "date-time"}`

	noteSchema = `{
  "type": "object",
  "properties": {"id": ` + idSchema + `, "text": {"type": "string"}, "tags": ` + tagsSchema + `, "created": ` + timeSchema + `, "updated": ` + timeSchema + `},
  "required": ["id", "text", "tags", "created", "updated"],
  "additionalProperties": false
}`
	excerptsSchema = `{"type": "array", "items": {
  "type": "object",
  "properties": {"id": ` + idSchema + `, "excerpt": {"type": "string"}, "tags": ` + tagsSchema + `, "created": ` + timeSchema + `, "updated": ` + timeSchema + `},
  "required": ["id", "excerpt", "tags", "created", "updated"],
  "additionalProperties": false
}}`
	oneNote = `{"type": "object", "properties": {"id": ` + idSchema + `}, "required": ["id"], "additionalProperties": false}`
)

// specs are the tools, in the order in which they are shown.
func specs() []registry.ToolSpec {
	return []registry.ToolSpec{
		{
			Key: remember, Title: "Remember", Destructive: true,
			Description: "Keeps a note for later conversations. With the id of a note, its text and tags replace those of that note.",
			Input: json.RawMessage(`{
  "type": "object",
  "properties": {
    "text": {"type": "string", "minLength": 1, "maxLength": 262144},
    "tags": ` + tagsSchema + `,
    "id": ` + idSchema + `
  },
  "required": ["text"],
  "additionalProperties": false
}`),
			Output: json.RawMessage(oneNote),
		},
		{
			Key: searchNotes, Title: "Search notes", ReadOnly: true, Idempotent: true,
			Description: `Finds notes by words of their texts and tags, the best first. Forms of English words find each other. ` +
				`Words in quotes ("exact words") stand together in that order; a word with an asterisk (invoi*) finds all words that begin so.`,
			Input: json.RawMessage(`{
  "type": "object",
  "properties": {
    "query": {"type": "string", "minLength": 1, "maxLength": 1000},
    "match": {"enum": ["any", "all"], "default": "any", "description": "whether a note has to have any of the words, or all"},
    "tag": ` + tagSchema + `,
    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}
  },
  "required": ["query"],
  "additionalProperties": false
}`),
			Output: json.RawMessage(`{"type": "object", "properties": {"notes": ` + excerptsSchema + `}, "required": ["notes"], "additionalProperties": false}`),
		},
		{
			Key: getNote, Title: "Get a note", ReadOnly: true, Idempotent: true,
			Description: "Returns a note with its whole text.",
			Input:       json.RawMessage(oneNote), Output: json.RawMessage(noteSchema),
		},
		{
			Key: listNotes, Title: "List notes", ReadOnly: true, Idempotent: true,
			Description: "Lists notes with the beginnings of their texts, newest first. Pass nextBefore of an answer as before to go on.",
			Input: json.RawMessage(`{
  "type": "object",
  "properties": {
    "tag": ` + tagSchema + `,
    "before": {"type": "integer", "minimum": 1, "description": "only notes with a smaller id"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
  },
  "additionalProperties": false
}`),
			Output: json.RawMessage(`{
  "type": "object",
  "properties": {
    "notes": ` + excerptsSchema + `,
    "total": {"type": "integer", "minimum": 0, "description": "of all notes there are"},
    "nextBefore": {"type": "integer", "description": "present where there are more"}
  },
  "required": ["notes", "total"],
  "additionalProperties": false
}`),
		},
		{
			Key: forgetNote, Title: "Forget a note", Destructive: true,
			Description: "Deletes a note for good.",
			Input:       json.RawMessage(oneNote), Output: json.RawMessage(oneNote),
		},
	}
}
