package typedrpc_test

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/codegen/testdata/golden/reviewer/prreviewer"
)

// A generated client and a generated server, joined by package rpc; connect
// hands typedrpc.Caller a caller.Client, and the inbox what
// typedrpc.Handlers made of the server.
func Example() {
	client, closeAll, err := connect(reviewer{})
	if err != nil {
		fmt.Println(err)
		return
	}
	review, err := client.ReviewPr(context.Background(), prreviewer.ReviewPrRequest{
		PRURL: "https://github.com/o/r/pull/1", Severity: prreviewer.ReviewPrRequestSeverityMed,
	})
	fmt.Println(review.Verdict, err)
	fmt.Println(closeAll())
	// Output:
	// approve <nil>
	// <nil>
}
