package audit

import (
	"context"
	"fmt"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// A QuarantineRequest is one `agentd audit quarantine`.
type QuarantineRequest struct {
	Logs   Choice
	Reason string
	// Yes skips the confirmation.
	Yes bool
}

// A quarantined is the outcome for one log.
type quarantined struct {
	Agent string `json:"agent"`
	// Records counts the rows taken out, Signed is the number of the last record that
	// stays, and Copy the database as it was found, with its hash.
	Records int64  `json:"records"`
	Signed  int64  `json:"signed"`
	Copy    string `json:"copy,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

// Quarantine takes out of a log what no checkpoint covers, if it does not open because
// of that. It never goes through a running agent: such a log has none.
func Quarantine(ctx context.Context, env *cli.Env, r QuarantineRequest) error {
	if err := checkReason(r.Reason); err != nil {
		return err
	}
	sources, err := findSources(env, r.Logs)
	if err != nil {
		return err
	}
	if len(sources) > 1 {
		return ambiguous(sources)
	}
	s := sources[0]
	if !r.Yes {
		lines := []string{"Records of " + s.DB + " that no checkpoint covers will be moved to a copy beside it, if the log does not open because of them."}
		if err := confirm(ctx, env, lines); err != nil {
			return err
		}
	}
	q, err := auditchain.Quarantine(ctx, s.DB, r.Reason)
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		return env.WriteJSON(quarantined{s.Agent, q.Records, q.Signed, q.Copy, q.SHA256})
	}
	if q.Copy == "" {
		_, err = fmt.Fprintf(env.Stdout, "%s: every record can be believed: nothing was taken out, the indexes are built anew\n", s.Agent)
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: %d rows taken out, the log ends with record %d; the database as it was found is %s (SHA-256 %s)\n",
		s.Agent, q.Records, q.Signed, q.Copy, q.SHA256)
	return err
}
