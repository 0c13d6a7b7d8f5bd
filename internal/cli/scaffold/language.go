package scaffold

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/cli"
)

// A language is what the agents of a new fleet are written in.
type language struct {
	name string
	// client is its name in package codegen, "" where it has no typed clients.
	client string
	// program runs it, ask prints its version, and least is the oldest that will do.
	program string
	ask     []string
	least   [2]int
	// also is another program that its skill needs, or "".
	also string
	// tests is the command that runs the tests of an agent, with %s for its id.
	tests string
	// taken are names of the templates' own, beside which code cannot call a module so.
	taken []string
}

// languages are all of them, in the order in which a default is looked for.
func languages() []language {
	return []language{
		{name: "python", client: "python", program: "python3", ask: []string{"--version"}, least: [2]int{3, 10},
			tests: "PYTHONPATH=kits/python python3 -m unittest discover -s agents/%s", taken: []string{"count_words"}},
		// Node runs TypeScript as it is from 22.18 on.
		{name: "typescript", client: "ts", program: "node", ask: []string{"--version"}, least: [2]int{22, 18},
			tests: "node --test agents/%s/*.test.ts"},
		{name: "go", client: "go", program: "go", ask: []string{"version"}, least: [2]int{1, 26}, tests: "go test ./agents/%s",
			taken: []string{"strings", "sdk", "testing", "in", "t", "text", "want", "got", "err"}},
		{name: "bash", program: "bash", ask: []string{"--version"}, least: [2]int{3, 2}, also: "jq", tests: "bash agents/%s/test.sh"},
	}
}

// findLanguage returns a language by its name.
func findLanguage(name string) (language, error) {
	var known []string
	for _, l := range languages() {
		if l.name == name {
			return l, nil
		}
		known = append(known, l.name)
	}
	return language{}, cli.Usage("--lang: no language %q; known are %s", name, strings.Join(known, ", "))
}

// askTimeout bounds the question for a version, which some version managers take long to answer.
const askTimeout = 10 * time.Second

// installed returns the version of a language that this machine has, or why it cannot run it.
func (l language) installed(ctx context.Context) (version, why string) {
	path, err := exec.LookPath(l.program)
	if err != nil {
		return "", l.program + " is not installed"
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, l.ask...).Output()
	found := regexp.MustCompile(`(\d+)\.(\d+)[.\d]*`).FindSubmatch(out)
	if err != nil || found == nil {
		return "", l.program + " does not say which version it is"
	}
	major, _ := strconv.Atoi(string(found[1])) // digits; what is too large for an int is not old
	minor, _ := strconv.Atoi(string(found[2]))
	version = string(found[0])
	if slices.Compare([]int{major, minor}, l.least[:]) < 0 {
		return "", fmt.Sprintf("%s is %s, and %s needs %d.%d", l.program, version, l.name, l.least[0], l.least[1])
	}
	if _, err := exec.LookPath(l.also); l.also != "" && err != nil {
		return "", l.also + " is not installed"
	}
	return version, ""
}

// choose returns the languages that names lists, or else up to two that are installed, and
// what to say about that.
func choose(ctx context.Context, names []string, most int) (chosen []language, notes []string, err error) {
	for _, name := range names {
		l, err := findLanguage(name)
		if err != nil {
			return nil, nil, err
		}
		if _, why := l.installed(ctx); why != "" {
			notes = append(notes, fmt.Sprintf("! %s: the skill in %s does not run here", why, l.name))
		}
		chosen = append(chosen, l)
	}
	if len(chosen) > 0 {
		return chosen, notes, nil
	}
	var have []string
	for _, l := range languages() {
		if version, why := l.installed(ctx); why == "" && len(chosen) < most {
			chosen = append(chosen, l)
			have = append(have, l.name+" ("+l.program+" "+version+" is installed)")
		}
	}
	if len(chosen) == 0 {
		return nil, nil, fmt.Errorf("none of python3 3.10, node 22.18, go 1.26, or bash with jq is installed: install one, or choose with --lang")
	}
	return chosen, []string{"in " + strings.Join(have, " and ") + "; --lang chooses others"}, nil
}
