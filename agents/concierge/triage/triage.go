package triage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/agentd/agentd/agents/concierge/peers/librarian"
	"github.com/agentd/agentd/agents/concierge/peers/prreviewer"
	"github.com/agentd/agentd/codegen/typed"
	"github.com/agentd/agentd/skill/sdk"
)

// notesTimeout bounds the search for notes, which are not worth a long wait.
const notesTimeout = 20 * time.Second

const (
	maxNoteRules = 3 // rules that notes are looked up for
	maxReasons   = 8 // reasons given for findings
)

// An Input is the payload of triage-pr.
type Input struct {
	// PRURL is where the pull request or its diff is.
	PRURL string `json:"prUrl"`
	// Title is that of the pull request; it may be empty.
	Title string `json:"title"`
}

// An Answer is the result of triage-pr.
type Answer struct {
	// Priority ranks the pull request.
	Priority Priority `json:"priority"`
	// Verdict is the reviewer's.
	Verdict string `json:"verdict"`
	// Owner is the team that should look at it; empty if anybody may.
	Owner string `json:"owner,omitempty"`
	// Reasons explain the priority, the most important one first. There is at
	// least one.
	Reasons []string `json:"reasons"`
	// Notes are what the team wrote about such findings.
	Notes []Note `json:"notes"`
}

// A Review is an answer of review-pr.
type Review = prreviewer.ReviewPrResponse

// A Finding is a finding of a Review; they come most severe first.
type Finding = prreviewer.ReviewPrResponseFindingsItem

// A Note is a section of the team's notes.
type Note struct {
	Title   string `json:"title"`
	Path    string `json:"path"`
	Line    int64  `json:"line"`
	Excerpt string `json:"excerpt"`
}

// Triage requests a review of the pull request and ranks the result.
//
// The error is a [*sdk.PublicError] if the review failed.
func Triage(ctx context.Context, caller typed.Caller, in Input) (Answer, error) {
	review, err := requestReview(ctx, prreviewer.NewClient(caller), in.PRURL)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Verdict: string(review.Verdict), Owner: owner(review.Findings), Notes: []Note{}}
	answer.Priority, answer.Reasons = prioritise(in.Title, review)

	notes, err := findNotes(ctx, librarian.NewClient(caller), noteRules(review.Findings))
	if ctx.Err() != nil { // no time left for any answer
		return Answer{}, ctx.Err()
	}
	if err != nil {
		answer.Reasons = append(answer.Reasons, fmt.Sprintf("The team's notes are missing here: the librarian gave no answer (%s).", outcome(err)))
	}
	answer.Notes = append(answer.Notes, notes...)
	return answer, nil
}

// requestReview requests a review with findings of every severity.
func requestReview(ctx context.Context, reviewer *prreviewer.Client, prURL string) (Review, error) {
	review, err := reviewer.ReviewPr(ctx, prreviewer.ReviewPrRequest{
		PRURL: prURL, Severity: prreviewer.ReviewPrRequestSeverityLow,
	})
	if err == nil {
		return review, nil
	}
	if ctx.Err() != nil {
		return Review{}, err
	}
	return Review{}, reviewFailure(err)
}

// reviewFailure explains to the caller why there is no review. The reviewer
// wrote the message of a nested error for its callers, so it is passed on. A
// violation or a broken connection is internal to this fleet, so only its
// code is.
func reviewFailure(err error) error {
	public := &sdk.PublicError{Message: "the pull request could not be reviewed (" + outcome(err) + ")", Cause: err}
	if nested := callError(err); nested != nil {
		public.Retryable = nested.Retryable()
		if nested.Result.Status == sdk.StatusError && nested.Result.Error != nil {
			public.Message += ": " + nested.Result.Error.Message
		}
	}
	return public
}

// findNotes searches the best note of each rule, for all rules concurrently.
// It returns the notes without duplicates, in the order of the rules, and the
// first error. Notes that were found are returned even if other searches
// failed.
func findNotes(ctx context.Context, notes *librarian.Client, rules []string) ([]Note, error) {
	type found struct {
		response librarian.SearchNotesResponse
		err      error
	}
	answers := make([]found, len(rules))
	var wg sync.WaitGroup
	for i, rule := range rules {
		wg.Go(func() {
			answers[i].response, answers[i].err = notes.SearchNotes(ctx,
				librarian.SearchNotesRequest{Query: rule, Limit: typed.Ptr(int64(1))}, typed.WithTimeout(notesTimeout))
		})
	}
	wg.Wait()

	var all []Note
	var firstErr error
	seen := map[Note]bool{}
	for _, answer := range answers {
		if answer.err != nil && firstErr == nil {
			firstErr = answer.err
		}
		for _, n := range answer.response.Results {
			note := Note{Title: n.Title, Path: n.Path, Line: n.Line, Excerpt: n.Excerpt}
			if !seen[note] {
				seen[note] = true
				all = append(all, note)
			}
		}
	}
	return all, firstErr
}
