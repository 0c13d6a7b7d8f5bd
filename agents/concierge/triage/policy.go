package triage

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/agentd/agentd/agents/concierge/peers/prreviewer"
	"github.com/agentd/agentd/skill/sdk"
)

// A Priority ranks pull requests by when to look at them.
type Priority string

// The priorities.
const (
	P1 Priority = "p1" // today, before anything else
	P2 Priority = "p2" // today
	P3 Priority = "p3" // in turn
)

// urgentTitle matches the words that make a title urgent, as the team's note
// on incidents lists them.
var urgentTitle = regexp.MustCompile(`(?i)\b(?:hotfix|security|incident|outage|revert|rollback)\b`)

// prioritise ranks a pull request: p1 with a high finding or an urgent title
// over a med one, p2 with a med finding or an urgent title, else p3.
func prioritise(title string, review Review) (Priority, []string) {
	rank := 3
	switch worst := worstSeverity(review.Findings); worst {
	case prreviewer.ReviewPrResponseFindingsItemSeverityHigh:
		rank = 1
	case prreviewer.ReviewPrResponseFindingsItemSeverityMed:
		rank = 2
	}
	var reasons []string
	if word := urgentTitle.FindString(title); word != "" {
		rank = max(rank-1, 1)
		reasons = append(reasons, fmt.Sprintf("The title says %q.", word))
	}
	for i, f := range review.Findings {
		if i == maxReasons {
			reasons = append(reasons, fmt.Sprintf("There are %d more findings.", len(review.Findings)-i))
			break
		}
		reasons = append(reasons, fmt.Sprintf("%s (%s, %s): %s", place(f), f.Rule, f.Severity, f.Message))
	}
	if len(review.Findings) == 0 {
		reasons = append(reasons, "The reviewer objects to nothing.")
	}
	return Priority(fmt.Sprintf("p%d", rank)), reasons
}

// severity is the reviewer's scale.
type severity = prreviewer.ReviewPrResponseFindingsItemSeverity

// worstSeverity returns the highest severity among the findings; "" if there
// are none.
func worstSeverity(findings []Finding) severity {
	for _, s := range []severity{
		prreviewer.ReviewPrResponseFindingsItemSeverityHigh,
		prreviewer.ReviewPrResponseFindingsItemSeverityMed,
		prreviewer.ReviewPrResponseFindingsItemSeverityLow,
	} {
		if slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == s }) {
			return s
		}
	}
	return ""
}

func place(f Finding) string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// owners maps teams to the reviewer's rules, the team that matters more
// first. The notes name the same owners.
var owners = []struct {
	team  string
	rules []string
}{
	{"security", []string{"leaked-key", "tls-verify-off"}},
	{"quality", []string{"removed-test"}},
}

// owner returns the team that should look at the findings, or "".
func owner(findings []Finding) string {
	for _, o := range owners {
		if slices.ContainsFunc(findings, func(f Finding) bool { return slices.Contains(o.rules, f.Rule) }) {
			return o.team
		}
	}
	return ""
}

// noteRules returns the first few rules of the findings, each once.
func noteRules(findings []Finding) []string {
	var rules []string
	for _, f := range findings {
		if !slices.Contains(rules, f.Rule) && len(rules) < maxNoteRules {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}

// callError returns the [sdk.CallError] in err, or nil.
func callError(err error) *sdk.CallError {
	var nested *sdk.CallError
	errors.As(err, &nested)
	return nested
}

// outcome returns the error code or the status of a nested call that failed.
func outcome(err error) string {
	nested := callError(err)
	switch {
	case nested == nil:
		return "no usable answer"
	case nested.Result.Error != nil && nested.Result.Error.Code != "":
		return nested.Result.Error.Code
	}
	return string(nested.Result.Status)
}
