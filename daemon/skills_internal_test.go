package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/agentd/agentd/daemon/skillapi"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
)

// The API for skills answers the user that processes run as, also while none of them
// runs: a process that has outlived its call learns that, and is not reported as that of
// another user of the host.
func TestUsersOfProcessSkillsAreServed(t *testing.T) {
	api, err := skillapi.Listen(t.Context(), skillapi.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := api.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	d := &Daemon{}
	d.skillAPI.Store(api)
	d.serveUsers(map[string]rpc.Handler{"x": toolSkill{d: d, skill: &skill.Process{}}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api.URL()+"/v1/request", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("cut off: %v", err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 400 || resp.StatusCode >= 500 {
		t.Errorf("status %d without a call", resp.StatusCode)
	}
}
