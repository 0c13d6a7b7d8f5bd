package durable_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport/nats/durable"
)

// Streams are checked, and never changed behind somebody's back.
func TestStreamsAreChecked(t *testing.T) {
	t.Parallel()
	s := natstest.Run(t, "jetstream {}")
	conn := connect(t, s.URL())
	open := func(opts durable.Options) error {
		opts.Conn, opts.Agent = conn, calleeAddr.ID()
		_, err := durable.OpenMailbox(t.Context(), topic, opts)
		return err
	}
	if err := errors.Join(open(durable.Options{}), open(durable.Options{})); err != nil {
		t.Fatal(err)
	}
	var setting *durable.SettingError
	if err := open(durable.Options{ResultTTL: time.Hour}); !errors.As(err, &setting) || setting.Setting != "max age" || setting.Stream != "AGENTD_RESULTS_callee_v2" {
		t.Errorf("another TTL: %v", err)
	}
	js, err := conn.JetStream()
	if err == nil {
		err = errors.Join(js.DeleteStream(t.Context(), "AGENTD_DEAD_callee_v2"))
	}
	if err == nil {
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AGENTD_DEAD_callee_v2", Subjects: []string{"other"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := open(durable.Options{}); !errors.As(err, &setting) || setting.Setting != "subjects" || !strings.Contains(err.Error(), "nats stream edit AGENTD_DEAD_callee_v2") {
		t.Errorf("other subjects: %v", err)
	}
}
