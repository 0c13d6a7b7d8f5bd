package gojsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/schema"
)

// link is a reference from one definition to another, below items (a deeper
// value) or below anyOf (the same value, by choice).
type link struct {
	from, to int
	combined bool
}

// schemaOf writes definitions d0…dn that are linked so.
func schemaOf(n int, links []link) ([]byte, error) {
	definitions := map[string]any{}
	for i := range n {
		properties, anyOf := map[string]any{}, []any{map[string]any{"type": "string"}}
		for k, l := range links {
			if l.from != i {
				continue
			}
			ref := map[string]any{"items": map[string]any{"$ref": fmt.Sprintf("#/definitions/d%d", l.to)}}
			if l.combined {
				anyOf = append(anyOf, ref)
			} else {
				properties["p"+strconv.Itoa(k)] = ref
			}
		}
		definitions[fmt.Sprintf("d%d", i)] = map[string]any{"properties": properties, "anyOf": anyOf}
	}
	return json.Marshal(map[string]any{"definitions": definitions, "items": map[string]any{"$ref": "#/definitions/d0"}})
}

// TestGuardAgainstReachability: the guard refuses exactly the graphs in which a
// combined link that d0 reaches lies on a cycle, by the plainest algorithm.
func TestGuardAgainstReachability(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "n")
		links := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) link {
			return link{rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to"), rapid.Bool().Draw(t, "combined")}
		}), 0, 8).Draw(rt, "links")
		src, err := schemaOf(n, links)
		if err != nil {
			rt.Fatal(err)
		}
		s, err := schema.Compile(src)
		if err != nil {
			rt.Fatalf("%v in %s", err, src)
		}
		reaches := make([][]bool, n)
		for i := range reaches {
			reaches[i] = make([]bool, n)
			reaches[i][i] = true
		}
		for range n {
			for _, l := range links {
				for i := range reaches {
					reaches[i][l.to] = reaches[i][l.to] || reaches[i][l.from]
				}
			}
		}
		want := false
		for _, l := range links {
			want = want || l.combined && reaches[0][l.from] && reaches[l.to][l.from]
		}
		err = checkCost(s.Root())
		var refused *RefusedError
		if errors.As(err, &refused) != want {
			rt.Fatalf("refused: %v, want %v, for %v", err, want, links)
		}
	})
}

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		token        string
		loose, exact bool
	}{
		{"0", true, true}, {"-1", true, true}, {"1.5", true, true}, {"1e+21", true, true}, {"1e-7", true, true}, {"1e+300", true, true}, {"1e-300", true, true},
		{"1e+301", false, false}, {"1e+1000", false, false}, {"5e-324", false, false},
		{"9007199254740992", true, true}, {"9007199254740993", true, false}, {"0.30000000000000004", true, true}, {"0.1000000000000000055511151231257827", true, false},
	} {
		if got := holds(c.token, false); got != c.loose {
			t.Errorf("holds(%s) = %v", c.token, got)
		}
		if got := holds(c.token, true); got != c.exact {
			t.Errorf("holds(%s, exact) = %v", c.token, got)
		}
	}
}

// TestRewritingKeepsTheMeaning: a schema written anew judges as the original,
// at the root and as a part of a whole.
func TestRewritingKeepsTheMeaning(t *testing.T) {
	for _, source := range []string{
		`{"type":["object","null"],"properties":{"a":{"type":"integer","minimum":-2,"exclusiveMaximum":3e0},"b/~ ":{"type":"string","minLength":1,"maxLength":2,"pattern":"^\\d","format":"uuid"}},"required":["a"],"additionalProperties":{"enum":[1,"x",{"a":[]}]}}`,
		`{"definitions":{"":{"type":"array","items":{"$ref":"#/definitions/"},"minItems":1,"maxItems":2,"uniqueItems":true},"x%20/":{"const":1.0}},"oneOf":[{"$ref":"#/definitions/"},{"$ref":"#/definitions/x%2520~1"}]}`,
		`{"properties":{"a":{"$ref":"#"},"b":{"not":{"$ref":"#"}},"c":true},"additionalProperties":false}`,
		`{"allOf":[{"anyOf":[{"type":"string"},{"type":"number"}]},{"not":{"const":1}}]}`,
	} {
		s, err := schema.Compile([]byte(source))
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		again, err := compileNative(s.Root())
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		for _, payload := range []string{
			`null`, `1`, `1.0`, `2`, `"x"`, `"1"`, `[]`, `[[]]`, `[[[]]]`, `[[],[]]`, `{}`, `{"a":1}`, `{"a":3}`, `{"a":2.9}`, `{"a":1,"b/~ ":"1"}`,
			`{"a":1,"c":"x"}`, `{"a":1,"c":{"a":[]}}`, `{"a":1,"c":"y"}`, `{"a":{"a":{}}}`, `{"c":5}`, `{"d":5}`, `{"a":{"d":1}}`,
		} {
			if want, got := s.Valid([]byte(payload)), again.Valid([]byte(payload)); want != got {
				t.Errorf("%s\nrewritten %s\npayload %s: %v, want %v", source, again.Source(), payload, got, want)
			}
		}
	}
}

// TestParallelUse runs checks of one validator, and compilations that register
// formats, side by side; the race detector judges.
func TestParallelUse(t *testing.T) {
	s, err := schema.Compile([]byte(`{"type":"object","properties":{"mail":{"type":"string","format":"email"}},"required":["mail"]}`))
	if err != nil {
		t.Fatal(err)
	}
	v, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if i%2 == 0 {
					if _, err := Compile(s); err != nil {
						t.Error(err)
					}
				}
				if v.Check([]byte(`{"mail":"a@b.c"}`)).Verdict != schema.Valid || v.Check([]byte(`{"mail":"a"}`)).Verdict != schema.Invalid {
					t.Error("a verdict changed under load")
				}
			}
		})
	}
	wg.Wait()
}
