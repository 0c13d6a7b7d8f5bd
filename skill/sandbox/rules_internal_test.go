package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A call does not wait for a pipe that a skill has put in the place of its program.
func TestPipeInPlaceOfAProgram(t *testing.T) {
	t.Parallel()
	folder := Real(t.TempDir())
	pipe, script := filepath.Join(folder, "pipe"), filepath.Join(folder, "script")
	if err := syscall.Mkfifo(pipe, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!"+pipe+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string][]string{pipe: {pipe}, script: {script, pipe}} {
		found := make(chan []string, 1)
		go func() { found <- interpreters(program, nil) }()
		select {
		case got := <-found:
			if !slices.Equal(got, want) {
				t.Errorf("%s takes %q", program, got)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("it waits for %s", program)
		}
	}
}
