package ident_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/codegen/internal/ident"
)

func TestDistinct(t *testing.T) {
	got := ident.Distinct([]ident.Claim{
		{"get-user", "GetUser"}, {"get_user", "GetUser"}, {"close", "Close"}, {"client", "Client"}, {"getuser", "Getuser"}, {"close", "Close"},
	}, "CLIENT")
	for key, want := range map[string]string{
		"get-user": "GetUser_5d95", "get_user": "GetUser_bf1e", "getuser": "Getuser_6939", "close": "Close", "client": "Client_948f",
	} {
		if got[key] != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
}

// Names are unique whatever is claimed, and who gets which does not depend on the
// order. A further claim takes no name over: who had it has it still, or nobody has.
func TestDistinctDependsOnNoOrder(t *testing.T) {
	key := rapid.StringMatching(`[abA]([-_][a1])?(_[0-9a-f]{4})?`)
	name := func(key string) string { return ident.StartWithLetter(strings.ReplaceAll(key, "-", ""), "x") }
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(key, rapid.ID).Draw(t, "keys")
		claims := func(keys []string) (all []ident.Claim) {
			for _, k := range keys {
				all = append(all, ident.Claim{Key: k, Name: name(k)})
			}
			return all
		}
		names := ident.Distinct(claims(keys), "b")
		owners := map[string]string{"b": "nobody"}
		for k, n := range names {
			if other, taken := owners[strings.ToLower(n)]; taken || !strings.HasPrefix(n, name(k)) {
				t.Fatalf("%q is %q, which %q is too", k, n, other)
			}
			owners[strings.ToLower(n)] = k
		}
		shuffled := rapid.Permutation(keys).Draw(t, "order")
		for k, n := range ident.Distinct(claims(shuffled), "b") {
			if names[k] != n {
				t.Fatalf("%q is %q or %q", k, names[k], n)
			}
		}
		for k, n := range ident.Distinct(claims(append(slices.Clone(keys), "a-1", "A_a")), "b") {
			if owner, had := owners[strings.ToLower(n)]; had && owner != k && !strings.Contains(n, "_") {
				t.Fatalf("%q was %q, and is %q now", n, owner, k)
			}
		}
	})
}
