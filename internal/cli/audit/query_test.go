package audit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

type seqOnly struct{ Seq int64 }

func numbers(t *testing.T, env *clitest.Env) []int64 {
	t.Helper()
	var all []int64
	for _, r := range lines[seqOnly](t, env.Out.String()) {
		all = append(all, r.Seq)
	}
	return all
}

// Following the --after of each page visits every record once, in order, from
// either end and at any page size.
func TestPagesCoverTheLog(t *testing.T) {
	t.Parallel()
	const total = 9
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(total, "s")})
	env.Format = output.JSONL
	next := regexp.MustCompile(`continue with --order (newest|oldest) --after (\d+)\n$`)
	rapid.Check(t, func(rt *rapid.T) {
		q := QueryRequest{
			Logs: Choice{Agent: "desk"}, Limit: rapid.IntRange(1, total+2).Draw(rt, "limit"),
			Order: rapid.SampledFrom([]string{orderNewest, orderOldest}).Draw(rt, "order"),
		}
		var visited []int64
		for {
			env.Reset()
			if err := Query(t.Context(), &env.Env, q); err != nil {
				rt.Fatal(err)
			}
			page := numbers(t, env)
			visited = append(visited, page...)
			m := next.FindStringSubmatch(env.Err.String())
			if m == nil {
				break
			}
			after, err := strconv.ParseInt(m[2], 10, 64)
			if err != nil || m[1] != q.Order || len(page) != q.Limit {
				rt.Fatalf("a page of %d, and %s", len(page), env.Err)
			}
			q.After = after
		}
		if q.Order == orderNewest {
			slices.Reverse(visited)
		}
		for i, seq := range visited {
			if seq != int64(i+1) {
				rt.Fatalf("visited %v", visited)
			}
		}
		if len(visited) != total {
			rt.Fatalf("visited %d of %d", len(visited), total)
		}
	})
}

// Pages are of one log: with several, the hint says so.
func TestQueryOfSeveralLogs(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"clerk": calls(3, "s"), "desk": calls(3, "s")})
	if err := Query(t.Context(), &env.Env, QueryRequest{Limit: 4}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(env.Err.String(), "page through one log with --agent or --db") || strings.Count(env.Out.String(), "\n") != 5 {
		t.Errorf("%s%s", env.Out, env.Err)
	}
	err := Query(t.Context(), &env.Env, QueryRequest{After: 1})
	if clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--agent clerk, --agent desk") {
		t.Errorf("--after in several logs: %v", err)
	}
}

func TestQueryRequestErrors(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(1, "s")})
	env.Format = output.JSON
	for want, q := range map[string]QueryRequest{
		"--order: must be newest or oldest, not \"up\"": {Order: "up"},
		"--limit and --after must not be negative":      {Limit: -1},
		"--after must not be negative":                  {After: -1},
		"--follow never ends":                           {Follow: true},
		"--kind: there is no kind \"call\"":             {Conditions: Conditions{"kind": {"rpc_call", "call"}}},
		"--kind: there is no kind \"\"":                 {Conditions: Conditions{"kind": {""}}},
		"--side: must be request or response":           {Conditions: Conditions{"side": {"both"}}},
		"--since: must be like":                         {Conditions: Conditions{"since": {"monday"}}},
	} {
		if err := Query(t.Context(), &env.Env, q); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", q, err, want)
		}
	}
	if env.Out.String() != "" {
		t.Errorf("wrote %s", env.Out)
	}
}

// Captured payloads appear only for those who name their kind.
func TestCapturesAreHidden(t *testing.T) {
	t.Parallel()
	records := append(calls(1, "s"), auditchain.Record{Kind: auditchain.KindPayloadCapture, Body: []byte(`{"secret":1}`)})
	env := newOffice(t, map[string][]auditchain.Record{"desk": records})
	env.Format = output.JSONL
	for _, test := range []struct {
		kinds []string
		want  []int64
	}{
		{nil, []int64{1}},
		{[]string{"rpc_call"}, []int64{1}},
		{[]string{"payload_capture"}, []int64{2}},
		{[]string{"rpc_call", "payload_capture"}, []int64{1, 2}},
	} {
		env.Reset()
		if err := Query(t.Context(), &env.Env, QueryRequest{Conditions: Conditions{"kind": test.kinds}}); err != nil {
			t.Fatal(err)
		}
		if got := numbers(t, env); !slices.Equal(got, test.want) {
			t.Errorf("%v: records %v, want %v", test.kinds, got, test.want)
		}
	}
}

func TestQueryOfNothing(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(1, "s")})
	for format, want := range map[output.Format][2]string{
		output.Table: {"", "no audit records match the query.\n"},
		output.JSON:  {"[]\n", ""},
		output.JSONL: {"", ""},
	} {
		env.Reset()
		env.Format = format
		if err := Query(t.Context(), &env.Env, QueryRequest{Conditions: Conditions{"session": {"none"}}}); err != nil {
			t.Fatal(err)
		}
		if got := [2]string{env.Out.String(), env.Err.String()}; got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}

// The table shows violations as pointer and message, and what was erased by whom.
func TestRecordDetail(t *testing.T) {
	t.Parallel()
	violation := auditchain.Record{
		Kind: auditchain.KindSchemaViolation, Side: auditchain.SideRequest, Session: "s-1", Correlation: "c-1",
		Body: []byte(`{"violations":[{"path":"/n","message":"must be integer"},{"path":"","message":"too many"}]}`),
	}
	env := newOffice(t, map[string][]auditchain.Record{"desk": {violation, violation}})
	if err := Redact(t.Context(), &env.Env, RedactRequest{Matches: []string{"session=s-1", "text=integer"}, Reason: "test", Yes: true}); err != nil {
		t.Fatal(err)
	}
	appendTo(t, dbOf(t, env, "desk"), violation)
	env.Reset()
	if err := Query(t.Context(), &env.Env, QueryRequest{Conditions: Conditions{"kind": {"capability_schema_violation"}}}); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(env.Out.String(), "\n")
	if len(got) != 5 || !strings.HasSuffix(got[1], "erased by record 3") || !strings.HasSuffix(got[3], "/n must be integer; too many") {
		t.Errorf("%s", env.Out)
	}
}

// Cells of the endless table stay in their columns, and control characters of
// other machines do not reach the terminal.
func TestFollowedRows(t *testing.T) {
	t.Parallel()
	env := clitest.New(t, "")
	w := followWriter{&env.Env}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	for _, r := range []*record{
		{agent: "desk", Entry: auditchain.Entry{Seq: 7, Time: at, Kind: auditchain.KindRPCCall, Capability: "file"}},
		{agent: "desk", Entry: auditchain.Entry{Seq: 8, Time: at, Kind: auditchain.KindRPCCall, Capability: "a\x1b[2Jb"}},
	} {
		if err := w.write(r); err != nil {
			t.Fatal(err)
		}
	}
	want := fmt.Sprintf("%-14s  %-6s  %-24s  %-28s  %-22s  %s\n", "desk", "7", "2026-01-02T03:04:05.006Z", "rpc_call", "", "file") +
		fmt.Sprintf("%-14s  %-6s  %-24s  %-28s  %-22s  %s\n", "desk", "8", "2026-01-02T03:04:05.006Z", "rpc_call", "", `a\x1b[2Jb`)
	if env.Out.String() != want {
		t.Errorf("%q, want %q", env.Out, want)
	}
}
