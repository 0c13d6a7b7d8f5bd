package schema_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/schema"
)

// fullSuites are the whole of the official suites, a member for each of their files.
func fullSuites() map[string]schema.Dialect {
	return map[string]schema.Dialect{
		"../testdata/conformance/json-schema-test-suite/draft7.json":       schema.DialectDraft07,
		"../testdata/conformance/json-schema-test-suite/draft2020-12.json": schema.Dialect202012,
	}
}

// fetches lists the files of the suites in which some groups refer to documents outside
// of their own, with the number of those groups in draft-07 and in 2020-12. They are
// refused, and nothing else is.
func fetches() map[string][2]int {
	return map[string][2]int{
		"definitions.json":               {1, 0}, // the metaschema
		"defs.json":                      {0, 1}, // the metaschema
		"dynamicRef.json":                {0, 5},
		"optional/cross-draft.json":      {1, 1},
		"optional/format-assertion.json": {0, 2}, // metaschemas of the suite's own
		"ref.json":                       {1, 1}, // the metaschema
		"refRemote.json":                 {11, 15},
		"vocabulary.json":                {0, 2}, // metaschemas of the suite's own
	}
}

// annotations lists the files whose keywords assert nothing in the drafts from 2019-09
// on, and here in none: strings are not decoded to be validated.
func annotations() []string { return []string{"optional/content.json"} }

// TestConformanceFull holds the full profile to the official suites: every verdict as
// they have it, and no refusal but of what would have to be fetched.
func TestConformanceFull(t *testing.T) {
	for path, dialect := range fullSuites() {
		column := 0
		if dialect == schema.Dialect202012 {
			column = 1
		}
		groups, tests := 0, 0
		for file, all := range suiteFiles(t, path) {
			refused := 0
			opts := schema.CompileOptions{
				Profile: schema.ProfileFull, Dialect: dialect,
				AssertFormats: strings.HasPrefix(file, "optional/format"),
			}
			for _, g := range all {
				s, err := schema.CompileWith(g.Schema, opts)
				if err != nil {
					refused++
					wouldFetch(t, g, err)
					continue
				}
				groups++
				tests += len(g.Tests)
				if !slices.Contains(annotations(), file) {
					runFullGroup(t, file, g, s)
				}
			}
			if want := fetches()[file][column]; refused != want {
				t.Errorf("%s: %d groups are refused, want %d", file, refused, want)
			}
		}
		t.Logf("%s: %d groups and %d tests", path, groups, tests)
	}
}

// suiteFiles reads the groups of each file of a suite.
func suiteFiles(t *testing.T, path string) map[string][]suiteGroup {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var files map[string][]suiteGroup
	if err := json.Unmarshal(src, &files); err != nil {
		t.Fatal(err)
	}
	return files
}

// wouldFetch checks that a refusal names something outside of the document.
func wouldFetch(t *testing.T, g suiteGroup, err error) {
	t.Helper()
	var refusal *schema.CompileError
	if !errors.As(err, &refusal) {
		t.Fatalf("%v is no *CompileError", err)
	}
	for _, f := range refusal.Faults {
		if !strings.Contains(f.Message, "which is not in this document") && !strings.Contains(f.Message, "names the unknown dialect") {
			t.Errorf("%s is refused: %s", g.Description, f.Message)
		}
	}
}

func runFullGroup(t *testing.T, file string, g suiteGroup, s *schema.Schema) {
	t.Helper()
	for _, c := range g.Tests {
		violations := s.Validate(c.Data)
		if (len(violations) == 0) != c.Valid || s.Valid(c.Data) != c.Valid {
			t.Errorf("%s: %s: %s: %s is valid=%v by Valid, violations %v; want valid=%v\n%s",
				file, g.Description, c.Description, c.Data, s.Valid(c.Data), violations, c.Valid, g.Schema)
		}
		if len(violations) == 1 && violations[0].Message == "the value is invalid" {
			t.Errorf("%s: %s: nothing says what is wrong with %s", g.Description, c.Description, c.Data)
		}
	}
}
