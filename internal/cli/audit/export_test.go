package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

// Exports with one cursor continue each other: the file gets every record once.
func TestExportContinues(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(3, "s")})
	file := filepath.Join(t.TempDir(), "out.jsonl")
	r := ExportRequest{Logs: Choice{Agent: "desk"}, Format: "jsonl", To: file, Cursor: "siem"}
	for _, want := range []string{
		"desk: 3 records exported, up to number 3\n", "desk: 0 records exported, up to number 3\n", "desk: 2 records exported, up to number 5\n",
	} {
		env.Reset()
		if err := Export(t.Context(), &env.Env, r); err != nil || env.Err.String() != want || env.Out.String() != "" {
			t.Errorf("%v: %s%s, want %s", err, env.Out, env.Err, want)
		}
		if strings.Contains(want, " 0 ") {
			appendTo(t, dbOf(t, env, "desk"), calls(2, "s")...)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, l := range lines[struct{ Agentd seqOnly }](t, string(text)) {
		got = append(got, l.Agentd.Seq)
	}
	if !slices.Equal(got, []int64{1, 2, 3, 4, 5}) {
		t.Errorf("the file has records %v", got)
	}
}

// Cursors of other names have positions of their own, and conditions hold.
func TestExportCursorsAreIndependent(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": append(calls(2, "s-1"), calls(1, "s-2")...)})
	env.Format = output.JSON
	for cursor, conditions := range map[string]Conditions{"all": nil, "one": {"session": {"s-2"}}} {
		env.Reset()
		to := filepath.Join(t.TempDir(), "out")
		err := Export(t.Context(), &env.Env, ExportRequest{Logs: Choice{Agent: "desk"}, Conditions: conditions, Format: "cef", To: to, Cursor: cursor})
		want := map[string]string{"all": `"exported": 3`, "one": `"exported": 1`}[cursor]
		if err != nil || !strings.Contains(env.Out.String(), want) || !strings.Contains(env.Out.String(), `"last": 3`) {
			t.Errorf("%s: %v, %s; want %s", cursor, err, env.Out, want)
		}
	}
}

func TestExportErrors(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(1, "s"), "clerk": calls(1, "s")})
	full := env.Write(t, "full", "something\n")
	for want, r := range map[string]ExportRequest{
		`--format: must be one of`:            {Logs: Choice{Agent: "desk"}, Format: "xml", To: "-"},
		`--cursor: a name has 1 to 64`:        {Logs: Choice{Agent: "desk"}, Format: "cef", To: "-", Cursor: "../x"},
		`unlike "` + strings.Repeat("c", 65):  {Logs: Choice{Agent: "desk"}, Format: "cef", To: "-", Cursor: strings.Repeat("c", 65)},
		`is not empty: continue an export`:    {Logs: Choice{Agent: "desk"}, Format: "cef", To: full},
		`--side: must be request or response`: {Logs: Choice{Agent: "desk"}, Format: "cef", To: "-", Conditions: Conditions{"side": {"left"}}},
		`the fleet has several logs`:          {Format: "cef", To: "-"},
	} {
		if err := Export(t.Context(), &env.Env, r); clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := Export(t.Context(), &env.Env, ExportRequest{Logs: Choice{Agent: "desk"}, Format: "cef", To: full + "/x"}); clitest.Code(err) != cli.ExitFailed {
		t.Errorf("a file below a file: %v", err)
	}
	if text, err := os.ReadFile(full); err != nil || string(text) != "something\n" {
		t.Errorf("the file has now %q, %v", text, err)
	}
}
