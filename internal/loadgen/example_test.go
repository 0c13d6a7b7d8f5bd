package loadgen_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agentd/agentd/internal/loadgen"
)

func Example() {
	r := loadgen.Run(context.Background(), func(context.Context) loadgen.Outcome {
		return loadgen.Outcome{} // ok
	}, loadgen.Options{Rate: 1000, Concurrency: 10, For: 20 * time.Millisecond})
	fmt.Println(r.Due, r.OK()+r.Unsent)
	// Output: 20 20
}
