package skill

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/agentd/agentd/rpc"
)

// written is what a program's standard error becomes in the log, however it is cut
// into pieces on the way.
func written(t *testing.T, text string, piece int) (records []map[string]any, size int) {
	t.Helper()
	var out bytes.Buffer
	l := newLineLogger(slog.New(slog.NewJSONHandler(&out, nil)), &rpc.Invocation{
		From: "agent://a", Capability: "x", CorrelationID: "c-1", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	})
	for rest := text; rest != ""; {
		n := min(piece, len(rest))
		if took, err := l.Write([]byte(rest[:n])); took != n || err != nil {
			t.Fatal(took, err)
		}
		rest = rest[n:]
	}
	l.close()
	for line := range strings.Lines(out.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for key, want := range map[string]string{"peer": "agent://a", "capability": "x", "correlationId": "c-1", "traceId": "0af7651916cd43dd8448eb211c80319c"} {
			if r[key] != want {
				t.Errorf("%s is %v in %s", key, r[key], line)
			}
		}
		records = append(records, r)
	}
	return records, out.Len()
}

// Each line is one record, whatever it holds.
func TestLinesOfStandardError(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*maxLineBytes)
	for text, want := range map[string][]string{
		"":                      nil,
		"one":                   {"one"},
		"one\ntwo\r\n\n\nend":   {"one", "two", "end"},
		"\xff\x00\n":            {"\uFFFD\x00"},
		long + "\nnext\n":       {long[:maxLineBytes], "next"},
		strings.Repeat("\n", 9): nil,
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			records, _ := written(t, text, piece)
			var got []string
			for _, r := range records {
				if r["stderr"] != nil {
					got = append(got, r["stderr"].(string))
				}
			}
			if strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("%.20q in pieces of %d: %.100q", text, piece, got)
			}
		}
	}
	records, _ := written(t, long+"\n", 4096)
	if len(records) != 2 || records[0]["omittedBytes"] != 2.0*maxLineBytes || records[1]["omittedLines"] != 0.0 || records[1]["omittedBytes"] != 2.0*maxLineBytes {
		t.Errorf("a line that is cut: %d records, the last %v", len(records), records[len(records)-1])
	}
}

// What one call writes to the log is bounded, in whatever lines it writes, and what was
// left out is told once, to the byte.
func TestStandardErrorFitsTheLog(t *testing.T) {
	t.Parallel()
	const bytes3MB = 3 << 20
	for name, line := range map[string]string{
		"short lines": "x\n", "long lines": strings.Repeat("x", maxLineBytes-1) + "\n", "one endless line": strings.Repeat("x", bytes3MB),
		"control characters": "\x00\x01\x02\x03\n", "empty lines": "\n",
	} {
		text := strings.Repeat(line, bytes3MB/len(line))
		records, size := written(t, text, 32<<10)
		if size > 1<<20 {
			t.Errorf("%s: %d bytes of log", name, size)
		}
		if name == "empty lines" {
			if len(records) != 0 {
				t.Errorf("%s: %d records", name, len(records))
			}
			continue
		}
		lines, kept := 0.0, 0.0
		for _, r := range records[:len(records)-1] {
			lines++
			kept += float64(len(r["stderr"].(string)))
		}
		last := records[len(records)-1]
		ends := float64(strings.Count(text, "\n"))
		if last["level"] != "WARN" || last["lines"] != lines || kept+last["omittedBytes"].(float64)+ends != float64(len(text)) ||
			ends > 0 && lines+last["omittedLines"].(float64) != ends {
			t.Errorf("%s: %v records, %v bytes kept, told %v", name, lines, kept, last)
		}
	}
}
