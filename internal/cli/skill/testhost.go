package skill

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/rpc/callee"
)

// testHostVersion is that of the lines between a kit and the host of its tests.
const testHostVersion = 1

// A TestHost is one `agentd skill test-host`: it judges what the skills and the fake peers of a
// test exchange, as the agents of a fleet would.
type TestHost struct {
	// Capabilities is the path of the skill's capabilities file.
	Capabilities string
	// Peers are the paths of those of its peers.
	Peers []string
}

// A tribunal has the contracts of a test's agents.
type tribunal struct {
	self   envelope.Address
	agents map[envelope.Address]*capability.Document
}

// Execute says what the files hold, and then judges what each line of standard input asks about,
// until that ends.
func (h TestHost) Execute(ctx context.Context, env *cli.Env) error {
	j := tribunal{agents: map[envelope.Address]*capability.Document{}}
	hello := hello{ProtocolVersion: testHostVersion, Peers: []envelope.Address{}, Agents: map[envelope.Address][]offered{}}
	for i, path := range append([]string{h.Capabilities}, h.Peers...) {
		doc, err := loadContracts(path)
		if err != nil {
			return err
		}
		if j.agents[doc.Agent] != nil {
			return cli.Finding(fmt.Errorf("%s: another file has declared %s already", path, doc.Agent))
		}
		if i == 0 {
			j.self, hello.Agent = doc.Agent, doc.Agent
		} else {
			hello.Peers = append(hello.Peers, doc.Agent)
		}
		j.agents[doc.Agent] = doc
		hello.Agents[doc.Agent] = offers(doc)
	}
	out := json.NewEncoder(env.Stdout)
	out.SetEscapeHTML(false)
	if err := out.Encode(hello); err != nil {
		return err
	}
	for in := bufio.NewReader(env.Stdin); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		verdict, err := j.line(ctx, line)
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		if err := out.Encode(verdict); err != nil {
			return err
		}
	}
}

// loadContracts loads a file with the validators that agents run with.
func loadContracts(path string) (*capability.Document, error) {
	opts := cli.FleetOptions(fleet.LoadOptions{})
	doc, err := capability.LoadWith(path, capability.LoadOptions{ValidateSchemas: true, SecondOpinion: opts.SecondOpinion})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usage("%v", err)
	}
	if err != nil {
		return nil, cli.Finding(err)
	}
	return doc, nil
}

// A hello is the first line of the host. Its peers are in the order of their files.
type hello struct {
	ProtocolVersion int                            `json:"protocolVersion"`
	Agent           envelope.Address               `json:"agent"`
	Peers           []envelope.Address             `json:"peers"`
	Agents          map[envelope.Address][]offered `json:"agents"`
}

// An offered is what a kit need know of a capability.
type offered struct {
	Name      string `json:"name"`
	TimeoutMs int64  `json:"timeoutMs"`
	Progress  bool   `json:"progress"`
}

func offers(doc *capability.Document) []offered {
	all := make([]offered, 0, len(doc.Capabilities))
	for _, c := range doc.Capabilities {
		all = append(all, offered{Name: c.Name, TimeoutMs: rpc.EffectiveTimeout(0, c.Timeout).Milliseconds(), Progress: c.Progress})
	}
	return all
}

// A question is a line of the kit: about a payload, or about the failure of a skill.
type question struct {
	ID         json.RawMessage `json:"id"`
	Agent      string          `json:"agent"` // an address or an id; "" is the skill's own
	Capability string          `json:"capability"`
	Side       rpc.Side        `json:"side"`
	Payload    json.RawMessage `json:"payload"`
	Failure    *struct {
		Message   string `json:"message"`
		Retryable bool   `json:"retryable"`
	} `json:"failure"`
}

// A verdict is the line that answers it.
type verdict struct {
	ID     json.RawMessage `json:"id"`
	Valid  bool            `json:"valid"`
	Result *rpc.Result     `json:"result,omitempty"`
}

func (j *tribunal) line(ctx context.Context, line []byte) (verdict, error) {
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return verdict{}, fmt.Errorf("not a question: %w", err)
	}
	if q.Failure == nil && !slices.Contains([]rpc.Side{rpc.SideRequest, rpc.SideResponse}, q.Side) {
		return verdict{}, fmt.Errorf("side: must be %s or %s, not %q", rpc.SideRequest, rpc.SideResponse, q.Side)
	}
	err := j.judge(ctx, &q)
	if err == nil {
		return verdict{ID: q.ID, Valid: true}, nil
	}
	return verdict{ID: q.ID, Result: &rpc.Result{
		Status: err.Code.Status(), SchemaSide: err.Side, Violations: err.Violations, ViolationsOmitted: err.ViolationsOmitted, Error: err,
	}}, nil
}

// judge is the verdict on a question: nil, or the error that the caller would get.
func (j *tribunal) judge(ctx context.Context, q *question) *rpc.Error {
	agent := j.self
	if q.Agent != "" {
		agent = envelope.AddressFor(q.Agent)
	}
	doc := j.agents[agent]
	if doc == nil {
		return rpc.NewError(rpc.CodeNoPeer, nil, "%s is no peer: the test names no file of its capabilities", agent)
	}
	c, ok := doc.Lookup(q.Capability)
	if !ok {
		return rpc.NewError(rpc.CodeNoCapability, nil, "%s has no capability %q", agent, q.Capability)
	}
	if q.Failure != nil {
		return callee.JudgeFailure(agent, &rpc.SkillError{Message: q.Failure.Message, Retryable: q.Failure.Retryable})
	}
	return callee.Judge(ctx, agent, c, q.Side, q.Payload)
}
