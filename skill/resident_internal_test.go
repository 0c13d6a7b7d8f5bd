package skill

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A program that stays has its share of the log each minute, and what it was refused long ago
// explains nothing any more.
func TestSteadyLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := newSteadyLogger(slog.New(slog.NewTextHandler(&out, nil)), "models")
		write := func(text string) {
			t.Helper()
			if _, err := l.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		write("open /secret: permission denied\n" + strings.Repeat("x\n", maxLogLines))
		if l.refused == "" {
			t.Error("the refusal is not noted")
		}
		time.Sleep(logWindow + time.Second)
		write("again\n")
		if l.refused != "" {
			t.Errorf("%q is taken for the cause", l.refused)
		}
		l.close()
		if text := out.String(); strings.Count(text, "than the log takes in a minute") != 1 || !strings.Contains(text, "omittedLines=1 ") || !strings.Contains(text, "stderr=again") {
			t.Errorf("%.2000s", text)
		}
	})
}
