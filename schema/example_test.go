package schema_test

import (
	"fmt"
	"log"

	"github.com/agentd/agentd/schema"
)

func Example() {
	s, err := schema.Compile([]byte(`{
		"type": "object",
		"properties": {
			"prUrl": {"type": "string", "format": "uri"},
			"severity": {"enum": ["low", "med", "high"]}
		},
		"required": ["prUrl", "severity"],
		"additionalProperties": false
	}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Valid([]byte(`{"prUrl": "https://example.com/pull/7", "severity": "low"}`)))
	for _, v := range s.Validate([]byte(`{"severity": "urgent", "dryRun": true}`)) {
		fmt.Printf("%s: %s\n", v.Path, v.Message)
	}
	// Output:
	// true
	// /prUrl: missing required property "prUrl"
	// /severity: value not in enum ["low","med","high"]
	// /dryRun: additional property "dryRun" is not allowed
}

func ExampleCompile() {
	_, err := schema.Compile([]byte(`{"type": "object", "requried": ["a"], "properties": {"a": {"type": "strng"}}}`))
	fmt.Println(err)
	// Output:
	// invalid schema: at /requried: unsupported keyword "requried" (did you mean "required"?)
	// at /properties/a/type: unknown type "strng" (did you mean "string"?)
}

func ExampleSchema_Check() {
	s, err := schema.Compile([]byte(`{"items": {"type": "integer"}}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, payload := range []string{`[1, 2]`, `[1, 2.5]`, `[1, 2`} {
		report := s.Check([]byte(payload))
		fmt.Println(report.Verdict, report.Violations, report.Syntax)
	}
	// Output:
	// valid [] <nil>
	// invalid [{/1 expected type integer but got number type}] <nil>
	// malformed [] invalid JSON at byte 5: unexpected end of input
}

func ExampleNode() {
	s, err := schema.Compile([]byte(`{"properties": {"id": {"type": "string"}, "n": {"type": "integer"}}, "required": ["id"]}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range s.Root().Properties() {
		fmt.Println(p.Name, p.Schema.Types(), p.Required)
	}
	// Output:
	// id [string] true
	// n [integer] false
}
