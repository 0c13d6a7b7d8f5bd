package worker_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/worker"
)

// A worker in a few lines of shell: it counts the calls that it has served, which a program
// that is started for each call could not.
func ExamplePool() {
	const script = `
		while read -r line; do
			id=$(expr "$line" : '.*"id":\([0-9]*\)')
			case $line in
			*'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1}}' ;;
			*'"method":"invoke"'*) n=$((n + 1)); echo '{"jsonrpc":"2.0","id":'$id',"result":{"answer":'$n'}}' ;;
			esac
		done`
	pool, err := worker.New(worker.Config{
		Name:         "counter",
		Program:      &skill.Process{Command: []string{"sh", "-c", script}},
		Capabilities: []worker.Capability{{Name: "count"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close(context.Background())
	for range 3 {
		answer, err := pool.Handle(context.Background(), &rpc.Invocation{Capability: "count", Payload: json.RawMessage("null")})
		fmt.Println(string(answer), err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
}
