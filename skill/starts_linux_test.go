package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/sandbox"
)

// A burst of calls has no more helpers at once than the bound, and all of them are served.
// The helpers count each other: each makes a file, waits until as many are there as the
// bound allows, or a last one has been, and notes how many it has seen.
func TestStartsAreBounded(t *testing.T) {
	starts := sandbox.NewStarts()
	most := starts.Most()
	calls := 4 * most
	dir := t.TempDir()
	for _, name := range []string{"now", "seen"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	helper := filepath.Join(dir, "helper")
	// The turn ends with the helper. Its file goes before that, so that none is counted that
	// has had its turn.
	script := fmt.Sprintf(`#!/bin/sh
cd %q && : >now/$$ || exit 1
until [ -e full ]; do
	n=$(ls now | wc -l)
	if [ $n -ge %d ]; then : >full; fi
done
ls now | wc -l >seen/$$
rm now/$$
`, dir, most)
	if err := os.WriteFile(helper, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			p := &skill.Process{Command: []string{"true"}}
			s := confine(t, p)
			s.Helper, s.Starts = helper, starts
			// The helper becomes no program, and so there is no answer.
			if _, err := p.Handle(t.Context(), invocation(`{}`)); err == nil || !strings.Contains(err.Error(), "no answer") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	notes, err := os.ReadDir(filepath.Join(dir, "seen"))
	if err != nil || len(notes) != calls {
		t.Errorf("%d of %d helpers have run, %v", len(notes), calls, err)
	}
	for _, note := range notes {
		text, err := os.ReadFile(filepath.Join(dir, "seen", note.Name()))
		var n int
		if _, serr := fmt.Sscan(string(text), &n); err != nil || serr != nil || n > most {
			t.Errorf("a helper has seen %q at once, and the bound is %d (%v)", text, most, err)
		}
	}
}
