package httpskill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"

	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/httpskill"
)

// A service gets the payload as the body of a request, and answers with JSON.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"of":%q,"was":%s}`, r.Header.Get("Agentd-Caller"), payload)
	}))
	defer service.Close()
	u, _ := url.Parse(service.URL)
	s, err := httpskill.New(httpskill.Config{
		URL:    service.URL + "/score",
		Policy: netguard.Policy{Hosts: []string{u.Host}, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	answer, err := s.Handle(context.Background(), &rpc.Invocation{From: "agent://caller", Capability: "score", Payload: json.RawMessage(`[1]`)})
	fmt.Println(string(answer), err)
	// Output: {"of":"agent://caller","was":[1]} <nil>
}
