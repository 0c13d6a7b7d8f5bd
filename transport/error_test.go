package transport_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/agentd/agentd/transport"
)

func TestErrorIsItsCodeAndItsCause(t *testing.T) {
	err := fmt.Errorf("call: %w", &transport.Error{Code: transport.Disconnected, Op: "publish", Topic: "t", Cause: io.ErrUnexpectedEOF})
	if !errors.Is(err, transport.Disconnected) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v is not both its code and its cause", err)
	}
	if errors.Is(err, transport.Closed) {
		t.Error("an error is a code that it does not have")
	}
}

func TestEveryCodeHasWords(t *testing.T) {
	seen := map[string]transport.Code{}
	for c := transport.Closed; c <= transport.Failed; c++ {
		words := c.Error()
		if strings.HasPrefix(words, "transport code") {
			t.Errorf("code %d has no words", c)
		}
		if other, twice := seen[words]; twice {
			t.Errorf("codes %d and %d read the same", other, c)
		}
		seen[words] = c
	}
}

func ExampleError() {
	err := error(&transport.Error{Code: transport.NoResponders, Op: "publish", Topic: "agents.a.requests"})
	fmt.Println(errors.Is(err, transport.NoResponders), err)
	// Output: true publish agents.a.requests: nobody receives on this topic
}
