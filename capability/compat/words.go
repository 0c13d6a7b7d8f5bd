package compat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/truncate"
)

// maxWords bounds the findings about changed words of one schema.
const maxWords = 20

// words reports titles and descriptions inside of a schema that changed. They promise
// nothing, and yet models act by them: whoever may change them may tell a model what to do.
func (c *comparison) words(side Direction, before, after json.RawMessage) {
	old, new := Words(before), Words(after)
	pointers := slices.Sorted(maps.Keys(old))
	for pointer := range new {
		if _, known := old[pointer]; !known {
			pointers = append(pointers, pointer)
		}
	}
	slices.Sort(pointers)
	listed := 0
	for _, pointer := range pointers {
		was, had := old[pointer]
		is, has := new[pointer]
		if was == is && had == has {
			continue
		}
		if listed++; listed > maxWords {
			c.add(Finding{Side: side, Rule: RuleWords, Message: "more words of the schema changed"})
			return
		}
		f := Finding{Side: side, Rule: RuleWords, Message: changed(was, is, had, has)}
		if had {
			f.Old = pointer
		}
		if has {
			f.New = pointer
		}
		c.add(f)
	}
}

// maxQuoted bounds what a finding quotes of a text.
const maxQuoted = 400

func changed(was, is string, had, has bool) string {
	switch quoted := func(s string) string { return strconv.Quote(truncate.String(s, maxQuoted)) }; {
	case !had:
		return "words that models read were added: " + quoted(is)
	case !has:
		return "words that models read were removed: " + quoted(was)
	default:
		return "words that models read changed from " + quoted(was) + " to " + quoted(is)
	}
}

// Words returns the texts of a schema that are for people and models, by pointer. It may
// take a constant for one, and misses none.
func Words(source json.RawMessage) map[string]string {
	all := map[string]string{}
	var value any
	if json.Unmarshal(source, &value) != nil {
		return all
	}
	collectWords(all, "", value)
	return all
}

func collectWords(all map[string]string, at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			pointer := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			text, isText := member.(string)
			if isText && (name == "description" || name == "title" || name == "$comment") {
				all[pointer] = text
			}
			collectWords(all, pointer, member)
		}
	case []any:
		for i, element := range v {
			collectWords(all, at+"/"+strconv.Itoa(i), element)
		}
	}
}

// meaning reports changes of how the schemas are read and of what responses are.
func (c *comparison) meaning(before, after capability.ToolSchema) {
	if before.SchemaProfile != after.SchemaProfile {
		c.add(Finding{Rule: RuleProfile, Message: fmt.Sprintf(
			"the schema profile changed from %s to %s: agents whose agentd does not know it refuse their calls", before.SchemaProfile, after.SchemaProfile)})
	}
	if before.Result != after.Result {
		c.add(Finding{Rule: RuleResult, Message: fmt.Sprintf(
			"what responses are to MCP clients changed from %s to %s", before.Result, after.Result)})
	}
}

// RefuseWords makes changed descriptions, of capabilities and inside of their schemas,
// breaking: for those who have reviewed what models are told, and pin it.
func (r *Report) RefuseWords() {
	for i, f := range r.Findings {
		if f.Rule == RuleDescription || f.Rule == RuleWords {
			r.Findings[i].Breaking = true
		}
	}
	r.sort()
}
