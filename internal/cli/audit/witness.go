package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
)

// A witness is a value of --witness: exactly one field is set.
type witness struct {
	agent  envelope.Address
	folder *folderWitness
}

// parseWitnesses reads the values of --witness: an agent's address, the id of a member of
// the fleet, or an existing folder. A folder is opened here, so that a bad path is
// reported before the verification, which may take minutes, begins.
func parseWitnesses(env *cli.Env, values []string) ([]witness, error) {
	if len(values) == 0 {
		return nil, nil
	}
	f, _, err := fleetIfAny(env)
	if err != nil {
		return nil, fmt.Errorf("--witness: %w", err)
	}
	var all []witness
	// Folders come first, whatever the order of the flags: the report names
	// witnesses in the order in which they were asked.
	var agents []witness
	for _, value := range values {
		if strings.HasPrefix(value, "agent://") || isMember(f, value) {
			address, err := envelope.ParseAddress(string(envelope.AddressFor(value)))
			if err != nil {
				return nil, cli.Usage("--witness: %v", err)
			}
			agents = append(agents, witness{agent: address})
			continue
		}
		info, err := os.Stat(value)
		if err == nil && !info.IsDir() {
			return nil, cli.Usage("--witness: %s is a file: give the folder in which a witness keeps its checkpoints, or the file as --checkpoint", value)
		}
		if err != nil {
			return nil, fmt.Errorf("--witness: %w", err)
		}
		store, err := checkpoint.NewFolderStore(value)
		if err != nil {
			return nil, fmt.Errorf("--witness: %w", err)
		}
		all = append(all, witness{folder: &folderWitness{value, store}})
	}
	return append(all, agents...), nil
}

// fleetIfAny returns the fleet and its paths, or nil where there is none: --db and a
// folder need no fleet. A fleet whose files are faulty or cannot be read is an error.
// Taken for none, it would lose the keys that it pins, and its witnesses their names.
func fleetIfAny(env *cli.Env) (*fleet.Fleet, daemon.Paths, error) {
	f, paths, err := env.InspectFleet()
	if _, none := errors.AsType[*fleet.NoFleetError](err); none {
		return nil, daemon.Paths{}, nil
	}
	return f, paths, err
}

// isMember reports whether the fleet, if there is one, has a member with the id. It
// counts before a folder of that name: whoever can make a folder could stand in for the
// witness.
func isMember(f *fleet.Fleet, id string) bool {
	if f == nil {
		return false
	}
	_, ok := f.Member(id)
	return ok
}

// forLog returns the witness for one log. The way to an agent depends on the
// log: the agent that writes it may be the one that can reach the witness.
func (w witness) forLog(env *cli.Env, log Log) (checkpoint.Witness, error) {
	if w.folder != nil {
		return *w.folder, nil
	}
	_, paths, err := env.InspectFleet()
	if err != nil {
		return nil, fmt.Errorf("--witness %s: %w", w.agent, err)
	}
	return agentWitness{address: w.agent, direct: paths.Socket(w.agent.ID()), via: log.Socket}, nil
}

// pinWitnesses adds the keys of the witnesses that are known without being given: those
// that the agent.yaml of the log pins, and those of members whose own log is on this
// machine. The quorum is that of agent.yaml if none is given and all its witnesses are
// asked.
func pinWitnesses(env *cli.Env, log Log, asked []witness, opts *auditchain.VerifyOptions) error {
	opts.WitnessKeys = slices.Clip(opts.WitnessKeys)
	f, paths, err := fleetIfAny(env)
	if f == nil || err != nil {
		return err
	}
	pinned := map[envelope.Address]bool{}
	if m, ok := f.Member(log.Agent); ok && m.Agent != nil {
		for _, w := range m.Agent.Audit.Witnesses {
			opts.WitnessKeys = append(opts.WitnessKeys, w.Keys...)
			pinned[w.Address] = len(w.Keys) > 0
		}
		if q := m.Agent.Audit.WitnessQuorum; opts.Quorum == 0 && len(asked) == len(m.Agent.Audit.Witnesses) {
			opts.Quorum = q
		}
	}
	for _, w := range asked {
		m, member := f.Member(w.agent.ID())
		if w.folder != nil || !member || pinned[w.agent] {
			continue
		}
		own, err := auditchain.PublicKeysOf(daemon.AuditDB(m, paths))
		if err != nil {
			return fmt.Errorf("--witness %s: %w", w.agent, err)
		}
		opts.WitnessKeys = append(opts.WitnessKeys, own...)
	}
	return nil
}

// errCannotCosign is why neither witness signs: verifying only reads what a
// witness has seen before.
var errCannotCosign = errors.New("a witness given to verify cannot sign")

// A folderWitness reads the checkpoints that a witness keeps in a folder.
type folderWitness struct {
	folder string
	store  *checkpoint.FolderStore
}

var _ checkpoint.Witness = folderWitness{}

// Name implements [checkpoint.Witness].
func (w folderWitness) Name() string { return w.folder }

// Latest implements [checkpoint.Witness].
func (w folderWitness) Latest(ctx context.Context, origin string) ([]byte, error) {
	return w.store.Load(ctx, origin)
}

// Cosign implements [checkpoint.Witness].
func (w folderWitness) Cosign(context.Context, []byte, int64, tlog.TreeProof) ([]byte, error) {
	return nil, errCannotCosign
}

// An agentWitness is a running agent that keeps checkpoints of other agents'
// logs. It is asked on its control socket when it runs on this machine, and
// otherwise over the transport of the agent whose log it is.
type agentWitness struct {
	address envelope.Address
	direct  string // control socket of the witness
	via     string // control socket of the log's agent, or ""
}

var _ checkpoint.Witness = agentWitness{}

// Name implements [checkpoint.Witness].
func (w agentWitness) Name() string { return string(w.address) }

// Latest implements [checkpoint.Witness].
func (w agentWitness) Latest(ctx context.Context, origin string) ([]byte, error) {
	// The short way first: it works without a broker.
	note, err := witnessed(ctx, w.direct, "", origin)
	if !notRunning(err) || w.via == "" {
		return note, err
	}
	note, err = witnessed(ctx, w.via, w.address, origin)
	if notRunning(err) {
		return nil, fmt.Errorf("%s does not run on this machine, and the agent of the log, which could reach it elsewhere, does not run either", w.address)
	}
	return note, err
}

// Cosign implements [checkpoint.Witness].
func (w agentWitness) Cosign(context.Context, []byte, int64, tlog.TreeProof) ([]byte, error) {
	return nil, errCannotCosign
}

// witnessed asks the agent behind a control socket for the newest checkpoint of
// origin: its own copy when by is "", else the copy that the agent by keeps,
// fetched over the transport.
func witnessed(ctx context.Context, socket string, by envelope.Address, origin string) ([]byte, error) {
	client := control.NewClient(socket)
	defer client.Close()
	return client.Witnessed(ctx, by, origin)
}

// notRunning reports whether err means that no agent listens on the socket. Any
// other error is an answer, and trying another way would hide it.
func notRunning(err error) bool {
	_, ok := errors.AsType[*control.NotRunningError](err)
	return ok
}
