package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/internal/strictyaml"
)

// TestInheritanceAgainstTheChain: a flattened environment has, field by field,
// what the nearest environment on its chain says.
func TestInheritanceAgainstTheChain(t *testing.T) {
	root := t.TempDir()
	p, err := newPaths(root)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "n")
		parents := make([]int, n) // a lower number, or itself for none
		own := make([]map[string]string, n)
		var src strings.Builder
		src.WriteString("{")
		for _, i := range rapid.Permutation(ints(n)).Draw(rt, "order") {
			parents[i] = rapid.IntRange(0, i).Draw(rt, "parent")
			own[i] = map[string]string{}
			fmt.Fprintf(&src, "e%d: {", i)
			if parents[i] != i {
				fmt.Fprintf(&src, "inherit: e%d, ", parents[i])
			}
			for _, field := range []string{"peersRef", "secretsRef", "channelsRef"} {
				if rapid.Bool().Draw(rt, field) {
					own[i][field] = fmt.Sprintf("%s-%d", field, i)
					fmt.Fprintf(&src, "%s: %s, ", field, own[i][field])
				}
			}
			fmt.Fprintf(&src, "overrides: {a%d: {envFiles: [s%d]}, shared: {envFiles: [s%d]}}}, ", i, i, i)
		}
		src.WriteString("}")
		file, err := strictyaml.Parse("f.yaml", []byte(src.String()))
		if err != nil {
			rt.Fatal(err)
		}
		environments := decodeEnvironments(file.Root(), p)
		if err := file.Err(); err != nil {
			rt.Fatal(err)
		}
		for _, env := range environments {
			var i int
			if _, err := fmt.Sscanf(env.Name, "e%d", &i); err != nil {
				rt.Fatal(err)
			}
			chain := []int{i}
			for parents[chain[0]] != chain[0] {
				chain = slices.Insert(chain, 0, parents[chain[0]])
			}
			nearest := func(field string) string {
				for _, k := range slices.Backward(chain) {
					if v := own[k][field]; v != "" {
						return filepath.Join(root, v)
					}
				}
				return ""
			}
			got := []string{env.PeersRef, env.SecretsRef, env.ChannelsRef}
			want := []string{nearest("peersRef"), nearest("secretsRef"), nearest("channelsRef")}
			if !slices.Equal(got, want) || len(env.Chain) != len(chain) || len(env.Overrides) != len(chain)+1 {
				rt.Fatalf("%s: got %v, %v; want %v; in %s", env.Name, got, env, want, src.String())
			}
			if files := env.Overrides["shared"].EnvFiles; !slices.Equal(files, []string{filepath.Join(root, fmt.Sprintf("s%d", i))}) {
				rt.Fatalf("%s: an override must replace the inherited one: %v", env.Name, files)
			}
		}
	})
}

func ints(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestEveryCycleIsFound: a chain that bites its tail anywhere is one fault.
func TestEveryCycleIsFound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(rt, "n")
		back := rapid.IntRange(0, n-1).Draw(rt, "back")
		var src strings.Builder
		src.WriteString("{")
		for _, i := range rapid.Permutation(ints(n)).Draw(rt, "order") {
			next := i + 1
			if next == n {
				next = back
			}
			fmt.Fprintf(&src, "e%d: {inherit: e%d}, ", i, next)
		}
		src.WriteString("}")
		file, err := strictyaml.Parse("f.yaml", []byte(src.String()))
		if err != nil {
			rt.Fatal(err)
		}
		decodeEnvironments(file.Root(), paths{root: "/", real: "/"})
		err = file.Err()
		if err == nil || strings.Count(err.Error(), "circular inherit chain") != 1 || strings.Contains(err.Error(), "\n") {
			rt.Fatalf("%s: got %v", src.String(), err)
		}
	})
}

// TestPathsStayInside: a path of random steps is taken if and only if it never
// ends above the root, and then leads where the steps lead.
func TestPathsStayInside(t *testing.T) {
	root := t.TempDir()
	p, err := newPaths(root)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"..", ".", "a", "b..", "..c", ""}), 1, 8).Draw(rt, "steps")
		var stack []string
		above := 0
		for _, s := range steps {
			switch {
			case s == "" || s == ".":
			case s != "..":
				stack = append(stack, s)
			case len(stack) > 0:
				stack = stack[:len(stack)-1]
			default:
				above++
			}
		}
		text := "./" + strings.Join(steps, "/")
		file, err := strictyaml.Parse("f.yaml", []byte("'"+text+"'"))
		if err != nil {
			rt.Fatal(err)
		}
		got := p.inside(file.Root(), root)
		if want := filepath.Join(append([]string{root}, stack...)...); above == 0 && (got != want || file.Err() != nil) {
			rt.Fatalf("%s: got %q, %v; want %q", text, got, file.Err(), want)
		}
		if above > 0 && (got != "" || file.Err() == nil) {
			rt.Fatalf("%s: got %q, %v; it leads out", text, got, file.Err())
		}
	})
}

// TestLimitsDefaultOneByOne: a limit that is given never moves another.
func TestLimitsDefaultOneByOne(t *testing.T) {
	names := []string{"maxPayloadBytes", "maxInFlight", "maxPending", "shutdownTimeoutMs"}
	of := func(l Limits) []int64 {
		return []int64{int64(l.MaxPayloadBytes), int64(l.MaxInFlight), int64(l.MaxPending), l.ShutdownTimeout.Milliseconds()}
	}
	rapid.Check(t, func(rt *rapid.T) {
		want := of(DefaultLimits())
		var src strings.Builder
		src.WriteString("{")
		for i, name := range names {
			if rapid.Bool().Draw(rt, name) {
				want[i] = int64(rapid.IntRange(1, 80_000_000).Draw(rt, "value"))
				fmt.Fprintf(&src, "%s: %d, ", name, want[i])
			}
		}
		src.WriteString("}")
		file, err := strictyaml.Parse("f.yaml", []byte(src.String()))
		if err != nil {
			rt.Fatal(err)
		}
		if got := of(decodeLimits(file.Root())); !slices.Equal(got, want) || file.Err() != nil {
			rt.Fatalf("%s: got %v, %v; want %v", src.String(), got, file.Err(), want)
		}
	})
}

func TestEnvNames(t *testing.T) {
	for name, want := range map[string]bool{
		"PATH": true, "_": true, "a1": true, "GO_": true, "": false, "1A": false, "A=B": false, "A B": false, "É": false, "A-B": false, "@A": false, "[": false, "A{": false,
	} {
		if got := envName(name); got != want {
			t.Errorf("envName(%q) = %v", name, got)
		}
	}
}
