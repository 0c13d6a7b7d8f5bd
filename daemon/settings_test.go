package daemon

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/fleet"
)

// fill makes a value in which nothing is zero. It writes another value than
// otherwise at the path other, and returns the paths of all values that it wrote.
func fill(v reflect.Value, path, other string) (paths []string) {
	differs := path == other
	switch v.Interface().(type) {
	case fleet.Position: // where a key stands is not what it says
		return nil
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(pick[int64](differs, 2, 1), 0)))
		return []string{path}
	case json.RawMessage:
		v.SetBytes([]byte(pick(differs, "2", "1")))
		return []string{path}
	case *capability.Document:
		v.Set(reflect.ValueOf(&capability.Document{Path: pick(differs, "b", "a")}))
		return []string{path}
	case capability.TransportKind:
		v.Set(reflect.ValueOf(pick(differs, capability.Memory, capability.NATS)))
		return []string{path}
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				paths = append(paths, fill(v.Field(i), strings.TrimPrefix(path+"."+f.Name, "."), other)...)
			}
		}
		return paths
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem(), path, other)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fill(v.Index(0), path, other)
	case reflect.String:
		v.SetString(pick(differs, "b", "a"))
	case reflect.Bool:
		v.SetBool(differs)
	case reflect.Int, reflect.Int64:
		v.SetInt(pick[int64](differs, 2, 1))
	case reflect.Float64:
		v.SetFloat(pick(differs, 2.0, 1.0))
	default:
		panic("no value for " + path + " of type " + v.Type().String())
	}
	return []string{path}
}

func pick[T any](differs bool, other, usual T) T {
	if differs {
		return other
	}
	return usual
}

// Every field of what agent.yaml and the peers file decode to is seen by a row of the
// table: a key that a reload forgets would be changed in the file and nowhere else.
func TestSettingsSeeEveryKey(t *testing.T) {
	for name, test := range map[string]struct {
		file   string
		member func(other string) (m *fleet.Member, paths []string)
		// What is no key.
		passed []string
	}{
		"agent.yaml": {"agent.yaml", func(other string) (*fleet.Member, []string) {
			a := &fleet.AgentFile{}
			paths := fill(reflect.ValueOf(a).Elem(), "", other)
			return &fleet.Member{Agent: a}, paths
		}, []string{"Path", "Ignored.Key"}},
		"rpc-peers.yaml": {"rpc-peers.yaml", func(other string) (*fleet.Member, []string) {
			p := &fleet.Peer{}
			paths := fill(reflect.ValueOf(p).Elem(), "", other)
			return &fleet.Member{Peers: []*fleet.Peer{p}}, paths
		}, nil},
	} {
		usual, paths := test.member("none")
		if len(paths) < 10 {
			t.Fatalf("%s: only %q", name, paths)
		}
		passed := map[string]bool{}
		for _, p := range test.passed {
			passed[p] = true
		}
		for _, path := range paths {
			other, _ := test.member(path)
			seen := 0
			for _, s := range settings() {
				if s.file == test.file && !reflect.DeepEqual(s.value(nil, usual), s.value(nil, other)) {
					seen++
				}
			}
			if (seen > 0) == passed[path] {
				t.Errorf("%s: %d rows of settings.go see the field %s", name, seen, path)
			}
		}
	}
}

// The same files twice are no change, whatever lines they stand on.
func TestSettingsOfTheSameFiles(t *testing.T) {
	state := func(line int) reloadedState {
		at := fleet.Position{Line: line}
		a := &fleet.AgentFile{
			Skills: []fleet.Skill{{Name: "s", Position: at, Process: &fleet.Process{Command: []string{"x"}},
				Sandbox: &fleet.Sandbox{Position: at, Read: []fleet.SandboxPath{{Path: "p", Position: at}}, Write: []fleet.SandboxPath{{Path: "p", Position: at}}}}}, Durable: fleet.Durable{Position: at},
			Permissions: &fleet.Permissions{Allow: []fleet.PermissionRule{{Pattern: "p", Position: at}}}, Scopes: []fleet.PermissionRule{{Pattern: "s", Position: at}},
			Audit: fleet.Audit{Witnesses: []fleet.Witness{{Address: "agent://w", Position: at}}},
		}
		spec := capability.TransportSpec{Kind: capability.NATS, Requests: "r", Position: at}
		p := &fleet.Peer{Address: "agent://p", Position: at, Auth: &fleet.PeerAuth{Position: at}, Transports: []capability.TransportSpec{spec}}
		return reloadedState{fleet: &fleet.Fleet{}, member: &fleet.Member{
			Agent: a, Peers: []*fleet.Peer{p}, Capabilities: &capability.Document{Transports: []capability.TransportSpec{spec}},
		}}
	}
	for _, e := range []effect{swapped, restart, refused} {
		if keys := changed(e, state(1), state(2)); keys != nil {
			t.Errorf("%s: %q", e, keys)
		}
	}
}

// The guide has every row of the table.
func TestSettingsAreDocumented(t *testing.T) {
	guide, err := os.ReadFile("../docs/running.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "### What a reload does\n")
	section, _, _ = strings.Cut(section, "\n#")
	for _, s := range settings() {
		row := ""
		for line := range strings.Lines(section) {
			if strings.HasPrefix(line, "| `"+s.file+"` |") && strings.Contains(line, "| "+string(s.effect)+" |") {
				row += line
			}
		}
		if !strings.Contains(row, "`"+s.key+"`") {
			t.Errorf("docs/running.md does not say that %s of %s is %s", s.key, s.file, s.effect)
		}
	}
}
