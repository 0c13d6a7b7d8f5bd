package npmtest

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Conformance returns a command that runs the conformance suite of the Model Context Protocol. It
// writes its reports below the command's folder.
func Conformance(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return Program(t, "@modelcontextprotocol/conformance/dist/index.js", append(args, "-o", "out")...)
}

// Scenarios returns the scenarios in the output of the suite, each list sorted.
func Scenarios(output string) (passed, failed []string) {
	for _, m := range regexp.MustCompile(`(?m)^\s*([✓✗]) ([a-z0-9_/-]+): \d+ passed, \d+ failed`).FindAllStringSubmatch(output, -1) {
		if m[1] == "✓" {
			passed = append(passed, m[2])
		} else {
			failed = append(failed, m[2])
		}
	}
	slices.Sort(passed)
	slices.Sort(failed)
	return passed, slices.Compact(failed)
}

// Listed returns the scenarios that a file lists for a revision of the protocol, sorted: a line
// for each, with the revisions, the scenario, a colon and the reason why it does not apply.
func Listed(t *testing.T, file, revision string) (names []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && slices.Contains(strings.Split(fields[0], ","), revision) {
			names = append(names, strings.TrimSuffix(fields[1], ":"))
		}
	}
	slices.Sort(names)
	return names
}
