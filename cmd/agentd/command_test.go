package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli"
)

// execute runs a command line in this process, outside any fleet.
func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{Env: cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(name string) string {
		return map[string]string{"AGENTD_FLEET_ROOT": t.TempDir(), "HOME": t.TempDir()}[name]
	}}}
	code = run(t.Context(), args, a)
	return code, out.String(), errs.String()
}

// commands returns every command with its words, such as audit verify.
func commands(cmd *cobra.Command, words ...string) map[string]*cobra.Command {
	all := map[string]*cobra.Command{strings.Join(words, " "): cmd}
	for _, sub := range cmd.Commands() {
		for name, c := range commands(sub, append(words, sub.Name())...) {
			all[name] = c
		}
	}
	return all
}

// Every command explains itself, and refuses a flag that it does not have with
// the status for a wrong command line before it does anything.
func TestEveryCommand(t *testing.T) {
	all := commands((&app{}).rootCommand())
	if len(all) < 45 {
		t.Fatalf("found only %d commands", len(all))
	}
	for name, cmd := range all {
		words := strings.Fields(name)
		code, stdout, stderr := execute(t, append(words, "--help")...)
		usage := "agentd " + strings.Join(append(words[:max(0, len(words)-1)], cmd.Use), " ")
		if name == "" {
			usage = "agentd [command]"
		}
		if code != 0 || stderr != "" || !strings.Contains(stdout, usage) || !strings.Contains(stdout, "--output") {
			t.Errorf("%s --help: status %d, %s%s; want %q", name, code, stdout, stderr, usage)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || cmd.Long != "" && !strings.HasSuffix(strings.TrimSpace(cmd.Long), ".") {
			t.Errorf("%s: the short text has a full stop, or the long one has none", name)
		}
		code, stdout, stderr = execute(t, append(words, "--no-such-flag")...)
		if code != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, "--no-such-flag") || !strings.Contains(stderr, "--help") {
			t.Errorf("%s --no-such-flag: status %d, %s%s", name, code, stdout, stderr)
		}
	}
}

// A flag that selects one of several things says which, and the examples of a
// help text name commands that exist.
func TestExamplesNameCommands(t *testing.T) {
	all := commands((&app{}).rootCommand())
	for name, cmd := range all {
		for line := range strings.Lines(cmd.Example) {
			for _, part := range strings.Split(line, "agentd ")[1:] {
				words := strings.Fields(part)
				if _, ok := all[words[0]]; !ok {
					t.Errorf("%s: the example %q has no known command", name, line)
					continue
				}
				sub := all[words[0]]
				if sub.HasSubCommands() {
					// Some also run themselves, with flags of their own.
					if flag, ok := strings.CutPrefix(words[1], "--"); ok && sub.Flags().Lookup(flag) != nil {
						continue
					}
					takesArgument := sub.Runnable() && strings.Contains(sub.Use, " [")
					if _, ok := all[words[0]+" "+words[1]]; !ok && !takesArgument {
						t.Errorf("%s: the example %q has no known command", name, line)
					}
				}
			}
		}
	}
}

func TestCommandLines(t *testing.T) {
	for _, test := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"fleet", 0, ""}, {"audit", 0, ""}, {"caps", 0, ""}, {"", 0, ""},
		{"flete", 2, `unknown command "flete" for "agentd"; did you mean fleet?`},
		{"fleet lsit", 2, `unknown command "lsit" for "agentd fleet"; did you mean list?`},
		{"flete --help", 2, `unknown command "flete" for "agentd"; did you mean fleet?`},
		{"fleet --help lsit", 2, `unknown command "lsit" for "agentd fleet"; did you mean list?`},
		{"fleet lsit -h -o json", 2, `unknown command "lsit" for "agentd fleet"`},
		{"help flete", 2, `unknown command "flete" for "agentd"`},
		{"help audit verfiy", 2, `unknown command "verfiy" for "agentd audit"; did you mean verify?`},
		{"help", 0, ""}, {"help audit verify", 0, ""},
		{"audit zzzzzz", 2, `unknown command "zzzzzz" for "agentd audit"`},
		{"version now", 2, `unexpected argument "now"`},
		{"broker now", 2, `unexpected argument "now"`},
		{"broker --port 70000", 2, "70000"},
		{"broker --config /no/nats.conf", 1, "/no/nats.conf"},
		{"version -o yaml", 2, "must be table, json or jsonl"},
		{"version --fleet", 2, "flag needs an argument: --fleet"},
		{"run", 2, `required flag(s) "agent" not set`},
		{"run --agent x --log-level loud", 2, "--log-level: must be debug, info, warn or error"},
		{"fleet run --log-format xml", 2, "--log-format: must be text or json"},
		{"fleet list", 1, "fleet.yaml"},
		{"fleet status", 1, "fleet.yaml"},
		{"fleet peers a..b", 2, "a..b"},
		{"fleet provision now", 2, `unexpected argument "now"`},
		{"fleet reset-breaker a b", 2, `unexpected argument "b"`},
		{"request x", 2, "the argument <capability> is missing"},
		{"request a b c d", 2, `unexpected argument "d"`},
		{"request x y --timeout soon", 2, `invalid argument "soon"`},
		{"request x y {", 1, "the payload is not JSON"},
		{"await", 2, "the argument <correlation-id> is missing"},
		{"await id --timeout 2h", 2, "--timeout: must be from 1ms to 1h"},
		{"progress", 2, "the argument <json> is missing"},
		{"progress 1", 1, "AGENTD_URL is not set"},
		{"permissions explain a b", 2, "the argument <capability> is missing"},
		{"approvals approve", 2, "the argument <id> is missing"},
		{"dlq show 1", 2, `required flag(s) "agent" not set`},
		{"dlq drop --agent a", 2, "the argument <number> is missing"},
		{"dlq redrive --agent a one", 2, `"one" is no number of a dead letter`},
		{"identity rotate", 2, "--agent is required"},
		{"identity rotate --agent a --after x", 2, `invalid argument "x"`},
		{"capabilities show", 2, "the argument <capability> is missing"},
		{"capabilities show x --peer a --capabilities b", 2, "[capabilities peer]"},
		{"capabilities validate x", 2, `required flag(s) "payload" not set`},
		{"capabilities gen", 2, "give either --peer <id> or --capabilities <path>"},
		{"capabilities gen --peer a --lang perl", 2, "--lang: "},
		{"capabilities diff a", 2, "diff needs two files"},
		{"capabilities diff a b c", 2, `unexpected argument "c"`},
		{"capabilities lint x --profile y", 2, "--profile: "},
		{"audit query --agent a --db b", 2, "[agent db]"},
		{"audit query --follow --order newest", 2, "[follow order]"},
		{"audit query --follow --until 1h", 2, "[follow until]"},
		{"audit query --limit many", 2, `invalid argument "many"`},
		{"audit query --limit -1", 2, "--limit and --after must not be negative"},
		{"audit query --db nowhere.db", 1, "there is no such database"},
		{"audit export", 2, `--format: must be one of [jsonl ocsf otlp cef]`},
		{"audit prove 0", 2, `"0" is no record number`},
		{"audit verify-proof x", 2, `required flag(s) "key" not set`},
		{"audit redact --match session=s", 2, `required flag(s) "reason" not set`},
		{"audit prune --reason x", 2, `required flag(s) "older-than" not set`},
	} {
		code, stdout, stderr := execute(t, strings.Fields(test.args)...)
		if code != test.code || !strings.Contains(stderr, test.stderr) || (code == 0) != (stderr == "") || code != 0 && stdout != "" {
			t.Errorf("%s: status %d, %s%s; want status %d and %q", test.args, code, stdout, stderr, test.code, test.stderr)
		}
		// Only a wrong command line is answered with where to read about it.
		if hint := strings.Contains(stderr, "for how to use it"); hint != (code == cli.ExitUsage) {
			t.Errorf("%s: status %d, %s", test.args, code, stderr)
		}
	}
}

// An error of several lines stays one paragraph, whose first line has the
// program's name.
func TestErrorsAreIndented(t *testing.T) {
	_, _, stderr := execute(t, "capabilities", "diff", "a.yaml", "b.yaml")
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "agentd: ") || !strings.HasPrefix(lines[1], "  ") {
		t.Errorf("%q", stderr)
	}
}

func TestVersion(t *testing.T) {
	if code, stdout, _ := execute(t, "version"); code != 0 || !strings.HasPrefix(stdout, "agentd ") {
		t.Errorf("status %d, %s", code, stdout)
	}
	if code, stdout, _ := execute(t, "version", "-o", "jsonl"); code != 0 || !strings.Contains(stdout, `"version":"`) || strings.Count(stdout, "\n") != 1 {
		t.Errorf("status %d, %s", code, stdout)
	}
}
