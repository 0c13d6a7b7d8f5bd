package export

import (
	"encoding/json"
	"strconv"

	"github.com/agentd/agentd/auditchain"
)

// actorOf returns who did what a record is about, or nil: most records are about calls.
func actorOf(e *auditchain.Entry) *auditchain.Actor {
	switch e.Kind {
	case auditchain.KindApproval, auditchain.KindLifecycle, auditchain.KindRedaction, auditchain.KindPrune, auditchain.KindCheckpoint:
	default:
		return nil // without a look at the body, of which there are many
	}
	var body struct {
		Actor *auditchain.Actor `json:"actor"`
	}
	// Bodies are other packages'; one whose actor is something else has none.
	if json.Unmarshal(e.Body, &body) != nil {
		return nil
	}
	return body.Actor
}

// numberOf is a user id as text, or "" where it is not known.
func numberOf(uid *uint32) string {
	if uid == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*uid), 10)
}
