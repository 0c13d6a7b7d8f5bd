package review

import (
	"fmt"
	"slices"
	"testing"
)

// The patches are the data of the demo: their reviews are pinned here.
func TestSamplePatches(t *testing.T) {
	tests := []struct {
		name     string
		verdict  Verdict
		findings []string
	}{
		{"limit-uploads.patch", Approve, nil},
		{"invoice-export.patch", RequestChanges, []string{
			"web/src/invoices/export.ts:9 high leaked-key",
			"web/src/invoices/export.ts:22 med debug-print",
			"web/src/invoices/export.ts:5 low todo-no-owner",
		}},
		{"country-table.patch", RequestChanges, []string{
			"internal/tax/rates.go:80 high conflict-marker",
			"internal/tax/rates_test.go:11 med removed-test",
			"internal/tax/rates.go:1 low huge-hunk",
		}},
	}
	source := Source{Root: ".."}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			diff, err := source.Fetch(t.Context(), "file:patches/"+tt.name)
			if err != nil {
				t.Fatal(err)
			}
			files, err := ParseDiff(diff)
			if err != nil {
				t.Fatal(err)
			}
			report := Review(files, Low)
			var got []string
			for _, f := range report.Findings {
				got = append(got, fmt.Sprintf("%s:%d %s %s", f.File, f.Line, f.Severity, f.Rule))
			}
			if report.Verdict != tt.verdict || !slices.Equal(got, tt.findings) {
				t.Errorf("got %s, %q\nwant %s, %q", report.Verdict, got, tt.verdict, tt.findings)
			}
		})
	}
}
