package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleFlag { // this binary is also its own children
		exit(runRole(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// Every system answers, in processes of its own, and has its line in the table.
func TestEverySystemIsMeasured(t *testing.T) {
	p := plan{payloads: []int{200}, callers: []int{4}, duration: 40 * time.Millisecond, rounds: 1}
	var out strings.Builder
	if err := p.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, s := range systems() {
		if !strings.Contains(out.String(), "| "+s.name+" | ") {
			t.Errorf("no line for %s in\n%s", s.name, &out)
		}
	}
}

func TestPayloadSizes(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	review, ok := doc.Lookup("review")
	if !ok {
		t.Fatal("the contract has no review")
	}
	for _, size := range []int{200, 4096} {
		data := payload(size)
		if !json.Valid(data) || len(data) > size || len(data) < size*3/4 {
			t.Errorf("%d bytes asked for: %d bytes, valid JSON: %v", size, len(data), json.Valid(data))
		}
		if report := review.Input.Validator.CheckWithin(t.Context(), data); report.Verdict != schema.Valid {
			t.Errorf("the payload violates its schema: %v", report.Violations)
		}
	}
}
