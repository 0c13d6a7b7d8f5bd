package sdk_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/agentd/agentd/skill/sdk"
)

// A skill is a function from the payload to the result. In a program, func
// main passes it to Main; Run is the same on any streams.
func ExampleRun() {
	type input struct {
		Words []string `json:"words"`
	}
	type output struct {
		Count int `json:"count"`
	}
	count := func(_ context.Context, in input) (output, error) {
		if len(in.Words) == 0 {
			return output{}, sdk.Fail("there is nothing to count")
		}
		return output{Count: len(in.Words)}, nil
	}

	noEnvironment := func(string) string { return "" }
	for _, payload := range []string{`{"words":["a","b"]}`, `{}`} {
		code := sdk.Run(context.Background(), strings.NewReader(payload), os.Stdout, os.Stderr, noEnvironment, count)
		fmt.Println("exit", code)
	}
	// Output:
	// {"count":2}
	// exit 0
	// {"error":{"message":"there is nothing to count","retryable":false}}
	// exit 1
}
