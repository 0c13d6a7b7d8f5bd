package fleetlint_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/fleetlint"
)

// A referenceKey is one row of the table in docs/reference-keys.md.
type referenceKey struct{ file, key, here, example string }

// text is the row's file, with or without the example.
func (k referenceKey) text(with bool) string {
	example := ""
	if with {
		example = k.example
	}
	switch k.file {
	case "agent.yaml":
		if strings.HasPrefix(example, "name:") {
			return example + "\n"
		}
		return "name: desk\n" + example + "\n"
	case "fleet.yaml":
		return "version: 1\nname: office\nagents: [{id: desk, path: ./desk}, {id: clerk, path: ./clerk}]\n" + example + "\n"
	case "rpc-peers.yaml":
		return "version: 1\npeers: [{agent: agent://clerk, transports: [" + nats + "], " + example + "}]\n"
	default:
		return "version: 1\nagent: agent://clerk\ntransports: [" + nats + "]\ncapabilities: [{name: file, " + example + "}]\n"
	}
}

// path is where the row's file stands in the office.
func (k referenceKey) path() string {
	switch k.file {
	case "agent.yaml":
		return "desk/agent.yaml"
	case "capabilities.yaml":
		return "clerk/capabilities.yaml"
	}
	return k.file
}

// referenceKeys reads the table.
func referenceKeys(t *testing.T) (keys []referenceKey) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference-keys.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 7 && strings.HasPrefix(line, "| `") {
			keys = append(keys, referenceKey{strings.Trim(cells[1], " `"), cells[2], strings.TrimSpace(cells[3]), strings.Trim(cells[4], " `")})
		}
	}
	return keys
}

// decoded is what the file of a row comes to, without places and without the list
// of carried keys.
func (k referenceKey) decoded(t *testing.T) (any, []fleet.IgnoredKey) {
	t.Helper()
	f, err := fleet.Load(".", fleet.LoadOptions{})
	if err != nil {
		t.Fatalf("the file does not load: %v", err)
	}
	desk, _ := f.Member("desk")
	clerk, _ := f.Member("clerk")
	switch k.file {
	case "agent.yaml":
		a := *desk.Agent
		ignored := a.Ignored
		a.Ignored, a.Path = nil, ""
		return a, ignored
	case "capabilities.yaml":
		return *clerk.Capabilities.Capabilities[0], nil
	case "rpc-peers.yaml":
		return desk.Peers[0].Auth, nil
	}
	return []any{f.RPC, desk.EnvFiles()}, nil
}

// Every key of the reference runtime is treated as the list says: one that is
// honoured changes what is loaded, one that is carried changes nothing, and one that
// is refused is an error with a line and a remedy.
func TestReferenceKeys(t *testing.T) {
	keys := referenceKeys(t)
	if len(keys) < 50 {
		t.Fatalf("the table has %d rows", len(keys))
	}
	for _, k := range keys {
		if k.example == "" {
			continue // in every file
		}
		t.Run(k.file+" "+k.example, func(t *testing.T) {
			check(t, "-- "+k.path()+" --\n"+k.text(false))
			base, _ := k.decoded(t)
			if err := os.WriteFile(k.path(), []byte(k.text(true)), 0o600); err != nil {
				t.Fatal(err)
			}
			findings, err := fleetlint.Validate(".", fleet.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if k.here == "refused" {
				wantRefusal(t, k, findings)
				return
			}
			got, ignored := k.decoded(t)
			same := reflect.DeepEqual(got, base)
			switch {
			case findings.Failed():
				t.Errorf("%s, and yet: %v", k.here, findings)
			case k.file == "fleet.yaml" && k.here == "carried":
			// Fields for other programs are kept.
			case k.file == "capabilities.yaml" && k.here == "carried":
			case k.file == "agent.yaml" && strings.HasPrefix(k.example, "permissions: {allow"): // the block counts
			case k.here == "honoured" && same && !strings.HasPrefix(k.example, "name:"):
				t.Error("honoured, and yet without effect")
			case k.here == "carried" && !same:
				t.Errorf("carried, and yet %+v is not %+v", got, base)
			case k.here == "carried" && len(ignored) != 1:
				t.Errorf("carried, and not said: %v", ignored)
			case k.here != "honoured" && k.here != "carried":
				t.Errorf("%q is no word of the table", k.here)
			}
		})
	}
}

// wantRefusal demands an error in the row's file, with a remedy.
func wantRefusal(t *testing.T, k referenceKey, findings fleet.Findings) {
	t.Helper()
	if len(findings) == 0 || findings[0].Severity != fleet.SeverityError {
		t.Fatalf("not refused: %v", findings)
	}
	f := findings[0]
	if f.Position.File != k.path() || f.Position.Line == 0 || f.Hint == "" {
		t.Errorf("refused as %+v", f)
	}
	// What an agent does is what its load does, except for providers, which the
	// daemon refuses.
	var faults *fleet.LoadError
	if _, err := fleet.Load(".", fleet.LoadOptions{}); !errors.As(err, &faults) && f.Code != fleetlint.AuthUnsupported {
		t.Errorf("the fleet loads: %v", err)
	}
}

// No key is taken that no page mentions: the loader itself says which it knows.
func TestEveryKnownKeyIsListed(t *testing.T) {
	listed := map[string]string{"fleet.yaml": "", "agent.yaml": ""}
	for _, k := range referenceKeys(t) {
		listed[k.file] += k.key
	}
	running, err := os.ReadFile(filepath.Join("..", "..", "docs", "running.md"))
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"agent.yaml": listed["agent.yaml"] + string(running), "fleet.yaml": listed["fleet.yaml"] + string(running)} {
		k := referenceKey{file: file, example: "zyxwvutsrqponmlk: 1"}
		said := check(t, "-- "+k.path()+" --\n"+k.text(true))
		known := regexp.MustCompile(`known keys: ([^)]+)\)`).FindStringSubmatch(said)
		if known == nil {
			t.Fatalf("%s: %s", file, said)
		}
		for _, key := range strings.Split(known[1], ", ") {
			if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, "`"+key+".") {
				t.Errorf("%s: no page lists the key %q", file, key)
			}
		}
	}
}
