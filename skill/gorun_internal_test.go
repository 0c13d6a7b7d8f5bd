package skill

import (
	"reflect"
	"strings"
	"testing"
)

func TestGoBuildWords(t *testing.T) {
	for command, want := range map[string]string{
		"go run ./cmd":                             "./cmd | ",
		"go run ./cmd a -b":                        "./cmd | a -b",
		"go run -race -tags x ./cmd -v":            "-race -tags x ./cmd | -v",
		"go run -ldflags=-X=a --tags=x .":          "-ldflags=-X=a --tags=x . | ",
		"go run -C sub main.go other.go in.txt":    "-C sub main.go other.go | in.txt",
		"/usr/local/go/bin/go run example.com/m/p": "example.com/m/p | ",
		"go run -exec valgrind .":                  "! -exec",
		"go run -tags x":                           "! names no package",
		"go run example.com/tool@latest":           "! go install",
	} {
		words, args, err := goBuild(strings.Fields(command))
		if fault, fails := strings.CutPrefix(want, "! "); fails {
			if err == nil || !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: %v", command, err)
			}
			continue
		}
		build, rest, _ := strings.Cut(want, " | ")
		if err != nil || !reflect.DeepEqual(words, strings.Fields(build)) || !reflect.DeepEqual(append([]string{}, args...), strings.Fields(rest)) {
			t.Errorf("%s: %q, %q, %v", command, words, args, err)
		}
	}
	for _, other := range []string{"go build .", "go run", "gopher run .", "sh -c go"} {
		if isGoRun(strings.Fields(other)) {
			t.Errorf("%s is taken for go run", other)
		}
	}
	for of, want := range map[string]string{"./agents/x": "x", ".": "fleet", "main.go": "main", "example.com/m/p": "p"} {
		if got := programName(of, "/srv/fleet"); got != want {
			t.Errorf("%s: %q", of, got)
		}
	}
}
