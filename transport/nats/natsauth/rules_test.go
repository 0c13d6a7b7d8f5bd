package natsauth_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport/nats/natsauth"
)

// What a peers file lists for a caller that is no member may be answered, too.
func TestReplyTopicsOfOthers(t *testing.T) {
	f := triage(t)
	reviewer, _ := f.Member("reviewer")
	reviewer.Peers[0].ReplyTopics = []string{"notes.answers", "notes.more.>"}
	rules, _, _ := derive(t, f)
	for _, subject := range []string{"notes.answers", "notes.more.>", "_INBOX.desk.>"} {
		if !slices.Contains(rules.Users[1].Publish, subject) {
			t.Errorf("the reviewer may publish to %v, want %s", rules.Users[1].Publish, subject)
		}
	}
}

func TestDerive(t *testing.T) {
	rules, conf, _ := derive(t, triage(t))
	if len(rules.Users) != 3 || rules.Users[0].Responds || !rules.Users[1].Responds {
		t.Errorf("users %+v", rules.Users)
	}
	if !slices.Equal(rules.External, []envelope.Address{"agent://elsewhere"}) || !strings.Contains(conf, "#   agent://elsewhere") {
		t.Errorf("external peers %v", rules.External)
	}
	want := []string{"agentd.changed.agents.team.notes.requests", "$SRV.STATS.team_notes", "_INBOX.team+notes.>", "_INBOX.OBSERVER.>", "_INBOX.reviewer.>"}
	if p := rules.Users[2].Publish; !slices.Equal(p, want) {
		t.Errorf("an agent without peers may publish to %v", p)
	}
}

func TestDeriveHonoursPermissions(t *testing.T) {
	rules, err := natsauth.Derive(triage(t), natsauth.Options{
		Allowed: func(_, to envelope.Address) bool { return to != "agent://reviewer" },
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := rules.Users[0].Publish; slices.Contains(p, "agents.reviewer.requests") || !slices.Contains(p, "other.requests") {
		t.Errorf("the desk may publish to %v", p)
	}
}

func TestDeriveSkipsMembersWithoutNATS(t *testing.T) {
	rules, err := natsauth.Derive(load(t,
		member{id: "local", subject: "agents.local.requests", noServer: true},
		member{id: "remote", subject: "agents.remote.requests"},
	), natsauth.Options{})
	if err != nil || len(rules.Users) != 1 || rules.Users[0].ID != "remote" {
		t.Errorf("%+v, %v", rules, err)
	}
	_, err = natsauth.Derive(load(t, member{id: "local", subject: "t", noServer: true}), natsauth.Options{})
	if !errors.Is(err, natsauth.ErrNoNATS) {
		t.Errorf("a fleet without NATS: %v", err)
	}
}

func TestDeriveRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		members []member
		want    []string
	}{
		"one subject for two": {[]member{{id: "a", subject: "s"}, {id: "b", subject: "s"}}, []string{"agents a and b share subjects"}},
		"subject below":       {[]member{{id: "a", subject: "s.x"}, {id: "b", subject: "s"}}, []string{"s.x and s"}},
		"wildcard":            {[]member{{id: "a", subject: "s.*"}}, []string{"capabilities.yaml", `"s.*"`, "not a valid NATS subject"}},
		"everything":          {[]member{{id: "a", subject: ">"}}, []string{"not a valid NATS subject"}},
		"inbox of another":    {[]member{{id: "a", subject: "_INBOX.b"}}, []string{"belongs to NATS"}},
		"system":              {[]member{{id: "a", subject: "$SYS.x"}}, []string{"belongs to NATS"}},
		"reference":           {[]member{{id: "a", subject: "${env:S}"}}, []string{"is a reference"}},
		"peer's subject":      {[]member{{id: "a", peers: []string{"b >"}}}, []string{"rpc-peers.yaml:3", "agent://b", "not a valid NATS subject"}},
		"one service name":    {[]member{{id: "a.b", subject: "s"}, {id: "a_b", subject: "t"}}, []string{"same service name a_b"}},
		"all faults, not one": {[]member{{id: "a", subject: "x y"}, {id: "b", subject: ">"}}, []string{`"x y"`, `">"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := natsauth.Derive(load(t, test.members...), natsauth.Options{})
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q in it", err, want)
				}
			}
		})
	}
}
