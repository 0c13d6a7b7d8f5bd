package discovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentd/agentd/internal/natstest"
)

// The framework's JavaScript client finds an agent, and reads all that is told of it. It
// needs Node, and $AGENTD_NODE_MODULES to name a node_modules with
// @nats-io/transport-node and @nats-io/services.
func TestForeignClientFindsAgents(t *testing.T) {
	dir := filepath.Dir(os.Getenv("AGENTD_NODE_MODULES"))
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@nats-io", "services")); err != nil {
		t.Skip("SKIPPED: discovery is not tested with a foreign client; run `npm i @nats-io/transport-node @nats-io/services` in a folder and set AGENTD_NODE_MODULES to its node_modules")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: discovery is not tested with a foreign client, since Node is not installed")
	}
	s := natstest.Run(t, "")
	a := announce(t, connect(t, s), "pr-reviewer")
	announce(t, connect(t, s), "librarian")

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "testdata/find.mjs", s.URL(), "pr-reviewer")
	cmd.Env = append(os.Environ(), "AGENTD_NODE_MODULES="+dir)
	out, err := cmd.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		t.Fatalf("%v\n%s", err, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	type identity struct {
		Name, ID, Version, Type, Description string
		Metadata                             map[string]string
		Endpoints                            []struct {
			Name, Subject string
			Queue         string            `json:"queue_group"`
			Metadata      map[string]string `json:"metadata"`
			Requests      int               `json:"num_requests"`
			Errors        int               `json:"num_errors"`
			Busy          time.Duration     `json:"processing_time"`
			Average       time.Duration     `json:"average_processing_time"`
			LastError     string            `json:"last_error"`
		}
	}
	var found struct{ Ping, Info, Stats []identity }
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for verb, all := range map[string][]identity{"ping": found.Ping, "info": found.Info, "stats": found.Stats} {
		if len(all) != 1 {
			t.Fatalf("%s found %+v", verb, all)
		}
		if i := all[0]; i.Name != "pr-reviewer" || i.ID != a.ID() || i.Version != "1.4.0-rc.1" || i.Metadata["agent"] != "agent://pr-reviewer" ||
			i.Type != "io.nats.micro.v1."+verb+"_response" {
			t.Errorf("%s found %+v", verb, i)
		}
	}
	if e := found.Info[0].Endpoints[0]; found.Info[0].Description == "" || e.Name != "review-pr" || e.Subject != "agents.pr-reviewer.requests" ||
		e.Queue != "agents.pr-reviewer" || e.Metadata["digest"] != "sha256:1" {
		t.Errorf("info %+v", found.Info[0])
	}
	if e := found.Stats[0].Endpoints[0]; e.Requests != 4 || e.Errors != 1 || e.Busy != 10*time.Millisecond || e.Average != 2500*time.Microsecond || e.LastError != "EAGENTRPC_BUSY" {
		t.Errorf("stats %+v", e)
	}
}
