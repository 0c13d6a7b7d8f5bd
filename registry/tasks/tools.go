package tasks

import (
	"encoding/json"

	"github.com/agentd/agentd/registry"
)

// The keys of the tools.
const (
	addTask      = "add_task"
	listTasks    = "list_tasks"
	getTask      = "get_task"
	removeTask   = "remove_task"
	claimTask    = "claim_task"
	extendTask   = "extend_task"
	completeTask = "complete_task"
	failTask     = "fail_task"
)

// What schemas share.
const (
	idSchema    = `{"type": "integer", "minimum": 1, "description": "the number of the task"}`
	textSchema  = `{"type": "string", "maxLength": 32768}`
	stateSchema = `{"enum": ["open", "claimed", "done", "failed"]}`
	timeSchema  = `{"type": "string", "format": "date-time"}`
	leaseSchema = `{"type": "string", "minLength": 1, "maxLength": 64, "description": "what claim_task answered with"}`
	spanSchema  = `{"type": "integer", "minimum": 1, "maximum": 86400, "default": 300, "description": "how long the lease runs from now"}`

	taskSchema = `{
  "type": "object",
  "properties": {
    "id": ` + idSchema + `, "title": {"type": "string"}, "details": {"type": "string"}, "key": {"type": "string"},
    "state": ` + stateSchema + `, "priority": {"type": "integer"},
    "attempts": {"type": "integer", "description": "how often it was claimed"}, "maxAttempts": {"type": "integer"},
    "notBefore": ` + timeSchema + `, "leaseEnds": ` + timeSchema + `,
    "result": {"type": "string"}, "reason": {"type": "string", "description": "why it failed, the last time"},
    "created": ` + timeSchema + `, "updated": ` + timeSchema + `
  },
  "required": ["id", "title", "state", "priority", "attempts", "maxAttempts", "created", "updated"],
  "additionalProperties": false
}`
	oneTask = `{"type": "object", "properties": {"id": ` + idSchema + `}, "required": ["id"], "additionalProperties": false}`
	outcome = `{"type": "object", "properties": {"id": ` + idSchema + `, "state": ` + stateSchema + `}, "required": ["id", "state"], "additionalProperties": false}`
)

// specs are the tools, in the order in which they are shown.
func specs() []registry.ToolSpec { return append(listSpecs(), leaseSpecs()...) }

// listSpecs are the tools of whoever fills the list.
func listSpecs() []registry.ToolSpec {
	return []registry.ToolSpec{
		{
			Key: addTask, Title: "Add a task",
			Description: "Adds a task to the list. With a key, no second task is added while one of that key is unfinished: the answer names that one.",
			Input: json.RawMessage(`{
  "type": "object",
  "properties": {
    "title": {"type": "string", "minLength": 1, "maxLength": 200},
    "details": ` + textSchema + `,
    "key": {"type": "string", "minLength": 1, "maxLength": 200},
    "priority": {"type": "integer", "minimum": -100, "maximum": 100, "default": 0, "description": "higher ones are claimed first, then older ones"},
    "delaySeconds": {"type": "integer", "minimum": 0, "maximum": 31536000, "default": 0, "description": "not to be claimed before"},
    "maxAttempts": {"type": "integer", "minimum": 1, "maximum": 100, "default": 3}
  },
  "required": ["title"],
  "additionalProperties": false
}`),
			Output: json.RawMessage(`{"type": "object", "properties": {"id": ` + idSchema + `, "added": {"type": "boolean"}}, "required": ["id", "added"], "additionalProperties": false}`),
		},
		{
			Key: listTasks, Title: "List tasks", ReadOnly: true, Idempotent: true,
			Description: "Lists tasks without their details, newest first. Pass nextBefore of an answer as before to go on.",
			Input: json.RawMessage(`{
  "type": "object",
  "properties": {
    "state": ` + stateSchema + `,
    "before": {"type": "integer", "minimum": 1, "description": "only tasks with a smaller id"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
  },
  "additionalProperties": false
}`),
			Output: json.RawMessage(`{
  "type": "object",
  "properties": {
    "tasks": {"type": "array", "items": ` + taskSchema + `},
    "counts": {"type": "object", "additionalProperties": {"type": "integer"}, "description": "of all tasks, by state"},
    "nextBefore": {"type": "integer", "description": "present where there are more"}
  },
  "required": ["tasks", "counts"],
  "additionalProperties": false
}`),
		},
		{
			Key: getTask, Title: "Get a task", ReadOnly: true, Idempotent: true,
			Description: "Returns a task with its details and its result.",
			Input:       json.RawMessage(oneTask), Output: json.RawMessage(taskSchema),
		},
		{
			Key: removeTask, Title: "Remove a task", Destructive: true,
			Description: "Deletes a task that nobody is working on.",
			Input:       json.RawMessage(oneTask), Output: json.RawMessage(oneTask),
		},
	}
}

// leaseSpecs are the tools of whoever does the work.
func leaseSpecs() []registry.ToolSpec {
	return []registry.ToolSpec{
		{
			Key: claimTask, Title: "Claim a task",
			Description: "Takes the next task, or the one that id names, for a time. Keep the lease: it completes, fails or extends. " +
				"Others can claim the task when the lease has ended. Where there is none, nextAt says when there may be one.",
			Input: json.RawMessage(`{
  "type": "object",
  "properties": {"id": ` + idSchema + `, "leaseSeconds": ` + spanSchema + `},
  "additionalProperties": false
}`),
			Output: json.RawMessage(`{
  "type": "object",
  "properties": {"claimed": {"type": "boolean"}, "task": ` + taskSchema + `, "lease": ` + leaseSchema + `, "nextAt": ` + timeSchema + `},
  "required": ["claimed"],
  "additionalProperties": false
}`),
		},
		{
			Key: extendTask, Title: "Extend a lease", Idempotent: true,
			Description: "Lets the lease of a task run on from now.",
			Input: json.RawMessage(`{
  "type": "object",
  "properties": {"id": ` + idSchema + `, "lease": ` + leaseSchema + `, "leaseSeconds": ` + spanSchema + `},
  "required": ["id", "lease"],
  "additionalProperties": false
}`),
			Output: json.RawMessage(`{"type": "object", "properties": {"id": ` + idSchema + `, "leaseEnds": ` + timeSchema + `}, "required": ["id", "leaseEnds"], "additionalProperties": false}`),
		},
		{
			Key: completeTask, Title: "Complete a task", Idempotent: true,
			Description: "Ends a task that this lease is on, with what came of it.",
			Input: json.RawMessage(`{
  "type": "object",
  "properties": {"id": ` + idSchema + `, "lease": ` + leaseSchema + `, "result": ` + textSchema + `},
  "required": ["id", "lease"],
  "additionalProperties": false
}`),
			Output: json.RawMessage(outcome),
		},
		{
			Key: failTask, Title: "Fail a task", Idempotent: true,
			Description: "Gives a task back that this lease is on, to be tried again unless retry is false or it was tried as often as it may be.",
			Input: json.RawMessage(`{
  "type": "object",
  "properties": {
    "id": ` + idSchema + `, "lease": ` + leaseSchema + `, "reason": ` + textSchema + `,
    "retry": {"type": "boolean", "default": true},
    "delaySeconds": {"type": "integer", "minimum": 0, "maximum": 31536000, "default": 0, "description": "not to be claimed before"}
  },
  "required": ["id", "lease", "reason"],
  "additionalProperties": false
}`),
			Output: json.RawMessage(outcome),
		},
	}
}
