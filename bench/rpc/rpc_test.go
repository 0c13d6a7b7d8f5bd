package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/schema"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleFlag { // this binary is also its own children
		exit(runRole(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// Every system answers, in processes of its own, and has its line in each table. The one
// that needs the compiled program is measured by whoever writes the page.
func TestEverySystemIsMeasured(t *testing.T) {
	var names []string
	for _, s := range systems() {
		if s.name != socketName {
			names = append(names, s.name)
		}
	}
	p := plan{
		payloads: []int{200}, callers: []int{4}, rates: []int{200}, duration: 40 * time.Millisecond, rounds: 1,
		only: strings.Join(names, ","), save: filepath.Join(t.TempDir(), "run.json"),
	}
	var out strings.Builder
	if err := p.run(t.Context(), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.Count(out.String(), "| "+name+" | ") != 2 {
			t.Errorf("no line for %s in\n%s", name, &out)
		}
	}
	again := plan{from: p.save}
	var read strings.Builder
	if err := again.run(t.Context(), &read, io.Discard); err != nil || read.String() != out.String() {
		t.Errorf("%v: from the data\n%s\nand from the run\n%s", err, &read, &out)
	}
}

// What an agent owes to its records is part of a call: they are there when the sample ends.
func TestRecordsAreWaitedFor(t *testing.T) {
	p := plan{payloads: []int{200}, duration: 40 * time.Millisecond, rounds: 1, only: "run"}
	b, err := open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	e := b.systems[0]
	before, err := e.settle([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.caller.do(command{Load: &loadSpec{Size: 200, Callers: 4, For: p.duration}})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(a.Report.Calls)
	after, err := e.settle([2]int64{before.recorded[0] + n, before.recorded[1] + n})
	if err != nil {
		t.Fatal(err)
	}
	for i, end := range []string{"caller", "callee"} {
		if got := after.recorded[i] - before.recorded[i]; got < n {
			t.Errorf("the %s has %d records of %d calls", end, got, n)
		}
	}
}

// The page has every goal, those that are missed first, by what the run has measured.
func TestPage(t *testing.T) {
	r := &result{For: time.Second, Machines: []machine{{CPU: "a processor", Others: -1}}}
	for _, s := range systems() {
		r.Rows = append(r.Rows, row{s.name, many, []sample{{PerSecond: 1000}, {PerSecond: 3000}, {PerSecond: 2000}}})
	}
	r.note(extraIdleMB, 21)
	r.note(extraStartMS, 400)
	var page strings.Builder
	if err := r.writePage(&page); err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, want := range []string{
		"ready | at most 40 ms | 400 ms | 400 ms to 400 ms | missed |",                        // before
		"against the floor | at least 0.85 × | 1.00 × | 1.00 × to 1.00 × | reached |",         // what is reached
		"resident memory | at most 22 MB | 21 MB | 21 MB to 21 MB | reached |",                // and that before
		"loading a fleet of 10,000 agents: CPU | at most 5.0 s | – | – | not measured here |", // what is not known
		"| run | 2000 | 1.00 (1.00–1.00) | 1.00 (1.00–1.00) |",                                // and the numbers
	} {
		at := strings.Index(page.String(), want)
		if at <= last {
			t.Errorf("%q at %d, after %d, in\n%s", want, at, last, &page)
		}
		last = at
	}
	if rows := strings.Count(page.String(), "| at "); rows != len(goals()) {
		t.Errorf("%d goals, want %d", rows, len(goals()))
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
	for _, size := range []int{smallest, 200, 299, 300, 301, 4096} {
		data := payload(size)
		if !json.Valid(data) || len(data) != size {
			t.Errorf("%d bytes asked for: %d bytes, valid JSON: %v", size, len(data), json.Valid(data))
		}
		if report := review.Input.Validator.CheckWithin(t.Context(), data); report.Verdict != schema.Valid {
			t.Errorf("the payload violates its schema: %v", report.Violations)
		}
	}
}

// The floor's messages are messages of package envelope, and the other way around.
func TestFloorSpeaksEnvelope(t *testing.T) {
	in := message{
		kind: "request", messageID: appendID(nil), correlationID: appendID(nil), from: []byte(callerAddr), to: []byte(calleeAddr),
		capability: []byte("review"), replyTo: []byte("nats://_INBOX.1"), deadline: 1790000000000, payload: payload(200),
	}
	in.headers[0], in.headerCount = [2][]byte{traceparentKey, appendTrace(nil)}, 1
	e, err := envelope.Decode(appendMessage(nil, &in))
	if err != nil {
		t.Fatal(err)
	}
	if e.Kind != envelope.Request || e.From != callerAddr || e.Deadline != in.deadline || string(e.Payload) != string(in.payload) || len(e.Headers) != 1 {
		t.Errorf("%+v", e)
	}
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var out message
	if err := decodeMessage(data, &out); err != nil {
		t.Fatal(err)
	}
	if string(out.messageID) != string(in.messageID) || out.deadline != in.deadline || string(out.payload) != string(in.payload) ||
		out.kind != "request" || string(out.headers[0][1]) != string(in.headers[0][1]) {
		t.Errorf("%+v", out)
	}
	for name, bad := range map[string]string{
		"cut short":   string(data[:len(data)-1]),
		"more behind": string(data) + "{}",
		"unknown key": strings.Replace(string(data), `"version"`, `"vershun"`, 1),
		"key twice":   strings.Replace(string(data), `{`, `{"version":1,`, 1),
		"other kind":  strings.Replace(string(data), `"request"`, `"requests"`, 1),
		"no address":  strings.Replace(string(data), `agent://caller`, `caller`, 1),
	} {
		if err := decodeMessage([]byte(bad), new(message)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
