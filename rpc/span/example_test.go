package span_test

import (
	"fmt"
	"time"

	"github.com/agentd/agentd/rpc/span"
)

// A printer samples every trace and prints its spans.
type printer struct{}

func (printer) Begin(parent string) string { return span.Child(parent, true) }

func (printer) End(s *span.Span) {
	trace, _ := span.IDs(s.Traceparent)
	fmt.Println(trace, s.Name, s.End.Sub(s.Start))
}

// Work that continues the trace of its caller.
func Example() {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	start := time.Now()
	own := span.Continue(printer{}, caller)
	if span.Recorded(printer{}, own) {
		printer{}.End(&span.Span{Parent: caller, Traceparent: own, Name: "work", Kind: span.Internal, Start: start, End: start.Add(time.Second)})
	}
	// Output: 0af7651916cd43dd8448eb211c80319c work 1s
}
