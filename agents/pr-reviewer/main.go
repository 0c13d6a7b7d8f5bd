// Command pr-reviewer is the skill behind the capability review-pr of the
// sample fleet. It fetches the diff of a pull request (this file) and reports
// what a careful reviewer would stop at (review.go).
//
// A skill is a program: agentd starts it with the call's payload as JSON on
// standard input and reads the result from standard output. The payload has
// passed the input schema of capabilities.yaml before, and the result must pass
// the output schema afterwards. With package sdk it is a function between them.
package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/agentd/agentd/skill/sdk"
)

// input is the payload of review-pr.
type input struct {
	// PRURL is a pull request on GitHub, or file: and the path of a patch in the
	// fleet's folder.
	PRURL string `json:"prUrl"`
	// Severity is the threshold: less severe findings are not reported.
	Severity string `json:"severity"`
}

func main() { sdk.Main(reviewPR) }

func reviewPR(ctx context.Context, in input) (report, error) {
	source := source{root: sdk.EnvironmentFrom(ctx).FleetRoot, transport: http.DefaultTransport}
	diff, err := source.fetch(ctx, in.PRURL)
	if err != nil {
		return report{}, err
	}
	files, err := parseDiff(string(diff))
	if err != nil {
		return report{}, sdk.Failf("the diff cannot be reviewed: %v", err)
	}
	return review(files, in.Severity), nil
}

// A source fetches diffs. The caller chooses the URL, so a source reaches two
// places and no other: patches below root, and pull requests on GitHub.
//
// The caller reads the text of the [sdk.PublicError] that a skill returns.
// Any other error goes to the agent's log, and the caller learns only that the
// skill failed.
type source struct {
	root      string // the fleet's folder
	transport http.RoundTripper
}

// pullRequest matches the pages of a pull request. GitHub serves the diff at the
// address in its group, with .diff appended.
var pullRequest = regexp.MustCompile(`^(https://github\.com/[\w.-]+/[\w.-]+/pull/\d+)(?:\.diff|/files|/commits)?/?$`)

func (s source) fetch(ctx context.Context, prURL string) ([]byte, error) {
	if name, ok := strings.CutPrefix(prURL, "file:"); ok {
		return s.readPatch(name)
	}
	if match := pullRequest.FindStringSubmatch(prURL); match != nil {
		return s.download(ctx, match[1]+".diff")
	}
	return nil, sdk.Failf("prUrl is neither https://github.com/<owner>/<repository>/pull/<number> nor file:<path of a patch>")
}

// readPatch reads a patch of the fleet's folder. It takes .patch and .diff files
// only, because what it says of a malformed diff would reveal other files.
func (s source) readPatch(name string) ([]byte, error) {
	if ext := path.Ext(name); ext != ".patch" && ext != ".diff" {
		return nil, sdk.Failf("a file: URL names a .patch or .diff file, as in file:patches/fix.patch")
	}
	file, err := os.OpenInRoot(s.root, name) // neither .. nor a symbolic link leads out
	if err != nil {
		return nil, &sdk.PublicError{Message: "there is no file " + name + " in the fleet's folder", Cause: err}
	}
	defer func() { _ = file.Close() }() // a reader loses nothing
	return readAll(file)
}

func (s source) download(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: s.transport, Timeout: 20 * time.Second, CheckRedirect: withinGitHub}
	resp, err := client.Do(req)
	if err != nil {
		return nil, &sdk.PublicError{Message: "GitHub cannot be reached", Retryable: true, Cause: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		later := resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
		return nil, &sdk.PublicError{Message: "GitHub answered " + resp.Status + " for " + address, Retryable: later}
	}
	return readAll(resp.Body)
}

// withinGitHub stops at a redirect to anywhere but the hosts that serve GitHub's
// diffs; the redirect is then the answer.
func withinGitHub(to *http.Request, via []*http.Request) error {
	known := to.URL.Host == "github.com" || strings.HasSuffix(to.URL.Host, ".githubusercontent.com")
	if to.URL.Scheme != "https" || !known || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

// maxDiffBytes bounds a diff, which is held in memory. Nobody reviews more.
const maxDiffBytes = 8 << 20

func readAll(r io.Reader) ([]byte, error) {
	diff, err := io.ReadAll(io.LimitReader(r, maxDiffBytes+1))
	if err != nil {
		return nil, &sdk.PublicError{Message: "the diff could not be read to its end", Retryable: true, Cause: err}
	}
	if len(diff) > maxDiffBytes {
		return nil, sdk.Failf("the diff is larger than %d bytes; split the pull request", maxDiffBytes)
	}
	return diff, nil
}
