package nats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/natstest"
	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

// An operator takes a permission away while an agent listens, and gives it back: by a
// reload, and by a restart. The agent knows meanwhile, and then gets messages again.
func TestDeniedSubscriptionComesBack(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"reload", "restart"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "nats.conf")
			write := func(denied string) {
				conf := fmt.Sprintf(`authorization {users: [{user: u, password: p, permissions: {subscribe: {allow: ">"%s}}}]}`, denied)
				if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("")
			s := natstest.RunFile(t, path)
			change := func(denied string) {
				write(denied)
				if by == "restart" {
					s.Stop()
					defer s.Start()
				}
				s.Reload()
			}
			c := connect(t, nats.Options{Servers: []string{s.URL()}, User: "u", Password: "env:P", Getenv: func(string) string { return "p" }})
			got := make(chan string, 100)
			sub, err := c.Subscribe("a.b", "g", func(m transport.Message) { got <- string(m.Data) })
			if err != nil {
				t.Fatal(err)
			}
			change(`, deny: "a.b"`)
			eventually.Holds(t, "the subscription is denied", func() bool { return slices.Equal(c.Denied(), []string{"a.b"}) })
			change("")
			eventually.Holds(t, "the subscription is allowed", func() bool { return len(c.Denied()) == 0 })
			if err := c.Publish(t.Context(), transport.Message{Topic: "a.b", Data: []byte("hello")}); err != nil {
				t.Fatal(err)
			}
			if m := <-got; m != "hello" {
				t.Error(m)
			}
			if err := sub.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			if len(got) > 0 {
				t.Errorf("and once more: %s", <-got)
			}
			again, err := c.Subscribe("a.b", "g", func(m transport.Message) { got <- string(m.Data) })
			if err != nil {
				t.Fatalf("after it was allowed: %v", err)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// With an agent's inboxes those of nats.go's own requests are denied, to which nothing but a new
// connection subscribes again.
func TestRequestsOfTheClientComeBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nats.conf")
	write := func(denied string) {
		conf := fmt.Sprintf(`authorization {users: [{user: u, password: p, permissions: {subscribe: {allow: ">"%s}}}]}`, denied)
		if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	s := natstest.RunFile(t, path)
	c := connect(t, nats.Options{Servers: []string{s.URL()}, User: "u", Password: "env:P", Getenv: func(string) string { return "p" }})
	if _, err := c.OpenInbox(func(transport.Message) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().Subscribe("echo", func(m *natsgo.Msg) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := c.Client().Request("echo", []byte("hello"), time.Second)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	write(`, deny: "_INBOX.>"`)
	s.Reload()
	eventually.Holds(t, "the inbox is denied", func() bool { return len(c.Denied()) == 1 })
	write("")
	s.Reload()
	eventually.Succeeds(t, "a request is answered", ask)
}
