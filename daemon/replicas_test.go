package daemon_test

import (
	"strings"
	"testing"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/internal/natstest"
)

// A replica with an identity warns that it does not know what the others have accepted,
// whether it finds them or fleet.yaml says that there are some. Without identities there
// is nothing to be replayed.
func TestReplicasShareNoMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		identities bool
		shared     bool
		deploy     string
		second     bool
		cause      string // "" for no warning
	}{
		"alone":                {identities: true},
		"one, by fleet.yaml":   {identities: true, deploy: "minInstances: 1, maxInstances: 1"},
		"two":                  {identities: true, second: true, cause: "2 replicas of this agent run"},
		"three, by fleet.yaml": {identities: true, deploy: "minInstances: 1, maxInstances: 3", cause: "fleet.yaml deploys up to 3 replicas"},
		"two without identity": {second: true},
		"two that share":       {identities: true, shared: true, second: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := natsFiles(natstest.Run(t, "jetstream {}").URL())
			if test.deploy != "" {
				all["fleet.yaml"] = strings.Replace(all["fleet.yaml"], "path: ./callee}", "path: ./callee, deploy: {target: t, "+test.deploy+"}}", 1) +
					"deploy: {targets: {t: {kind: local}}}\n"
			}
			if test.shared {
				all["callee/agent.yaml"] += "idempotency: {store: shared}\n"
			}
			cfg := load(t, all)
			if test.identities {
				publishKeys(t, cfg, "callee", "caller")
				cfg = reread(t, cfg)
			}
			cfg, logged := logTo(withGo(cfg))
			last := startAgent(t, cfg, "callee")
			if test.second {
				other := replicaOf(t, cfg, "test")
				if test.identities {
					copyKeys(t, cfg, other, "callee")
				}
				last = startAgent(t, other, "callee")
			}
			var found []string
			for _, c := range last.Status().Conditions {
				if c.Kind == health.Replicas {
					found = append(found, c.Cause)
				}
			}
			warned := len(found) == 1 && strings.Contains(found[0], test.cause)
			if (test.cause != "") != warned || last.Ready() != nil || warned != strings.Contains(logged(), "idempotency: {store: shared}") {
				t.Errorf("warned of %q, want %q; ready: %v; logged %s", found, test.cause, last.Ready(), logged())
			}
		})
	}
}
