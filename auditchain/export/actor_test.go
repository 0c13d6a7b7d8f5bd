package export

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
)

// Collections learn who has done what a record is about, where they look for it.
func TestActors(t *testing.T) {
	t.Parallel()
	for _, kind := range []auditchain.Kind{auditchain.KindApproval, auditchain.KindLifecycle, auditchain.KindRedaction, auditchain.KindPrune, auditchain.KindCheckpoint} {
		e := entryOf(kind)
		e.Body = json.RawMessage(`{"actor":{"executable":"/usr/bin/agentd x=y","pid":17,"uid":0,"user":"root"},"event":"e"}`)
		event := decoded(t, OCSF, e)
		for path, want := range map[string]any{
			"actor.user.name": "root", "actor.user.uid": "0", "actor.process.pid": float64(17), "actor.app_name": origin,
			"actor.process.file.path": "/usr/bin/agentd x=y", "actor.process.file.name": "agentd x=y", "actor.process.file.type_id": float64(1),
		} {
			if got := at(event, path); got != want {
				t.Errorf("%s: %s is %v", kind, path, got)
			}
		}
		if line := encode(t, CEF, e); !strings.Contains(line, ` suser=root suid=0 spid=17 sproc=/usr/bin/agentd x\=y `) {
			t.Errorf("%s: %s", kind, line)
		}
	}
	// Whoever wrote a body cannot pass for somebody in records of other kinds.
	for _, body := range []string{`{"actor":"ada"}`, `{}`, `{"actor":{"user":"unknown"}}`} {
		e := entryOf(auditchain.KindLifecycle)
		e.Body = json.RawMessage(body)
		if at(decoded(t, OCSF, e), "actor.process") != nil || strings.Contains(encode(t, CEF, e), "spid=") {
			t.Errorf("%s has a process", body)
		}
	}
	e := entryOf(auditchain.KindRPCCall)
	e.Body = json.RawMessage(`{"actor":{"user":"root","pid":1}}`)
	if at(decoded(t, OCSF, e), "actor.user") != nil || strings.Contains(encode(t, CEF, e), "suser") {
		t.Error("a call has an actor")
	}
}
