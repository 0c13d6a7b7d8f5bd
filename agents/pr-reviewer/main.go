// Command pr-reviewer is the skill behind the capability review-pr of the
// sample fleet: it reads a pull request's diff and reports findings.
//
// Hosts on loopback and private networks are refused unless the variable
// REVIEW_ALLOW_PRIVATE_HOSTS is 1 in the environment of agentd.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/agentd/agentd/agents/pr-reviewer/review"
	"github.com/agentd/agentd/skill/sdk"
)

// allowPrivateEnv admits diffs from hosts inside the network of this machine.
const allowPrivateEnv = "REVIEW_ALLOW_PRIVATE_HOSTS"

// input is the payload of review-pr.
type input struct {
	PRURL    string          `json:"prUrl"`
	Severity review.Severity `json:"severity"`
}

func main() { sdk.Main(reviewPR) }

func reviewPR(ctx context.Context, in input) (review.Report, error) {
	source := review.Source{
		Root:         sdk.EnvironmentFrom(ctx).FleetRoot,
		AllowPrivate: os.Getenv(allowPrivateEnv) == "1",
	}
	diff, err := source.Fetch(ctx, in.PRURL)
	if fetch := new(review.FetchError); errors.As(err, &fetch) {
		return review.Report{}, &sdk.PublicError{Message: fetch.Message, Retryable: fetch.Temporary, Cause: fetch.Cause}
	}
	if err != nil {
		return review.Report{}, err
	}
	files, err := review.ParseDiff(diff)
	if err != nil {
		return review.Report{}, sdk.Failf("what prUrl leads to cannot be reviewed: %v", err)
	}
	return review.Review(files, in.Severity), nil
}
