package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/cli/clitest"
	"github.com/agentd/agentd/internal/output"
)

// The flag wins over the variable, and the variable over the working directory.
// Any folder within the fleet will do.
func TestFleetRoot(t *testing.T) {
	here, there, flagged := clitest.New(t, clitest.Office), clitest.New(t, clitest.Office), clitest.New(t, clitest.Office)
	t.Chdir(filepath.Join(here.Dir, "desk"))
	env := &cli.Env{Getenv: func(string) string { return "" }}
	if root, err := env.FleetRoot(); err != nil || !sameFolder(t, root, here.Dir) {
		t.Errorf("working directory: %q, %v; want %s", root, err, here.Dir)
	}
	env.Getenv = func(name string) string { return map[string]string{"AGENTD_FLEET_ROOT": there.Dir}[name] }
	if root, err := env.FleetRoot(); err != nil || root != there.Dir {
		t.Errorf("variable: %q, %v; want %s", root, err, there.Dir)
	}
	env.FleetDir = filepath.Join(flagged.Dir, "clerk")
	if root, err := env.FleetRoot(); err != nil || root != flagged.Dir {
		t.Errorf("flag: %q, %v; want %s", root, err, flagged.Dir)
	}
	env.FleetDir = t.TempDir()
	if root, err := env.FleetRoot(); err == nil {
		t.Errorf("found a fleet in %q, where there is none", root)
	}
}

// Errors name files from the working directory, as the user would.
func TestFleetRootIsRelative(t *testing.T) {
	env := clitest.New(t, clitest.Office)
	t.Chdir(env.Dir)
	if root, err := env.FleetRoot(); err != nil || root != "." {
		t.Errorf("%q, %v; want .", root, err)
	}
	env.Write(t, "clerk/capabilities.yaml", "version: 1\nagnt: x\n")
	_, err := env.LoadFleet(fleet.LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), filepath.Join("clerk", "capabilities.yaml")+":2:") || strings.Contains(err.Error(), env.Dir) {
		t.Errorf("%v", err)
	}
}

func sameFolder(t *testing.T, x, y string) bool {
	t.Helper()
	a, errA := os.Stat(x)
	b, errB := os.Stat(y)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func TestLogger(t *testing.T) {
	for _, test := range []struct {
		flag, variable, format string
		info, debug            bool // whether such a message is written
		fails                  string
	}{
		{"", "", "text", true, false, ""},
		{"debug", "", "text", true, true, ""},
		{"", "debug", "json", true, true, ""},
		{"error", "debug", "json", false, false, ""}, // the flag wins
		{"loud", "", "text", false, false, "--log-level: must be debug, info, warn or error"},
		{"", "loud", "text", false, false, "--log-level"},
		{"", "", "xml", false, false, "--log-format: must be text or json"},
		{"", "", "", true, false, ""},
	} {
		env := clitest.New(t, "")
		env.LogLevel, env.Vars["AGENTD_LOG_LEVEL"], env.LogFormat = test.flag, test.variable, test.format
		log, err := env.Logger()
		if test.fails != "" {
			if clitest.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%+v: %v", test, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", test, err)
			continue
		}
		log.Info("an info")
		log.Debug("a debug")
		got := env.Err.String()
		if strings.Contains(got, "an info") != test.info || strings.Contains(got, "a debug") != test.debug ||
			test.info && strings.HasPrefix(got, "{") != (test.format == "json") {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// The environment chooses the format where the flag does not.
func TestLogFormatOfTheEnvironment(t *testing.T) {
	env := clitest.New(t, "")
	if env.LogsJSON() {
		t.Error("text is the default")
	}
	env.Vars["AGENTD_LOG_FORMAT"] = "json"
	if !env.LogsJSON() {
		t.Error("the variable does not count")
	}
	env.LogFormat = "text"
	if env.LogsJSON() {
		t.Error("the flag does not win")
	}
	env.LogFormat, env.Vars["AGENTD_LOG_FORMAT"] = "", "xml"
	if _, err := env.Logger(); clitest.Code(err) != cli.ExitUsage {
		t.Error(err)
	}
}

// Calls get a line each where the flag says so, else where the variable does.
func TestLogsCalls(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		flag     *bool
		variable string
		want     bool
		fails    bool
	}{
		{nil, "", false, false}, {nil, "true", true, false}, {nil, "0", false, false}, {&no, "true", false, false}, {&yes, "", true, false},
		{nil, "often", false, true},
	} {
		env := clitest.New(t, "")
		env.LogCalls, env.Vars["AGENTD_LOG_CALLS"] = test.flag, test.variable
		got, err := env.LogsCalls()
		if got != test.want || (clitest.Code(err) == cli.ExitUsage) != test.fails {
			t.Errorf("%+v: %v, %v", test, got, err)
		}
	}
}

// A list is one array with -o json and one value a line with -o jsonl. Without
// elements it is still an array, which a script can loop over.
func TestWriteList(t *testing.T) {
	type row struct {
		Name string `json:"name"`
	}
	for _, test := range []struct {
		format output.Format
		list   []row
		want   string
	}{
		{output.JSON, nil, "[]\n"},
		{output.JSON, []row{{"<a>"}}, "[\n  {\n    \"name\": \"<a>\"\n  }\n]\n"},
		{output.JSONL, nil, ""},
		{output.JSONL, []row{{"a"}, {"b"}}, "{\"name\":\"a\"}\n{\"name\":\"b\"}\n"},
	} {
		env := clitest.New(t, "")
		env.Format = test.format
		if err := cli.WriteList(&env.Env, test.list); err != nil || env.Out.String() != test.want {
			t.Errorf("%s of %v: %q, %v; want %q", test.format, test.list, env.Out, err, test.want)
		}
	}
}

func TestVersionIsNeverEmpty(t *testing.T) {
	if cli.Version() == "" {
		t.Error("the version is empty")
	}
}
