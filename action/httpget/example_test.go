package httpget_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/action/httpget"
	"github.com/agentd/agentd/internal/netguard"
)

func Example() {
	h, err := httpget.New(httpget.Config{Config: netguard.Config{Hosts: []string{"*"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	// Every public host is allowed; the metadata service of the cloud is none.
	_, err = h.Execute(context.Background(), json.RawMessage(`{"url": "http://169.254.169.254/latest/meta-data/"}`))
	fmt.Println(err)
	// Output:
	// the host's address is not on the public internet, and its range is not on this agent's list
}
