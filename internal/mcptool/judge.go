package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/mcpclient"
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema"
	"github.com/agentd/agentd/schema/contain"
)

// A verdict is what was found out about a tool when its list was read last.
type verdict struct {
	reason  string // "" where there is nothing to say
	refused bool
	since   time.Time
}

// judgeTimeout bounds the judgement of one tool.
const judgeTimeout = 5 * time.Second

// contract is what the server is held to, in its own words: what the capability has of it.
func (b Binding) contract() mcpclient.Contract {
	c := mcpclient.Contract{
		Name: b.Tool, Description: b.Capability.Description, InputSchema: b.Capability.Input.Source,
		Annotations: json.RawMessage(fmt.Sprintf(`{"idempotentHint":%v}`, b.Capability.Idempotent)),
	}
	switch {
	case b.Capability.Result == capability.ResultMCP:
		c.OutputSchema = b.Capability.StructuredSchema()
	case b.Capability.Output != nil && b.Text == TextUnused:
		c.OutputSchema = b.Capability.Output.Source
	}
	return c
}

// judge compares a tool with what the capability needs of it, in place of comparing their
// texts. served is nil where the server has no such tool.
func (s *Server) judge(ctx context.Context, pinned mcpclient.Contract, served *mcpclient.Contract) (changes []mcpclient.Change, refused bool) {
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	var b Binding
	for _, bound := range s.bindings {
		if bound.Tool == pinned.Name {
			b = bound
		}
	}
	if served == nil {
		changes, refused = []mcpclient.Change{{Part: mcpclient.PartTool}}, true
	} else if fault := s.prove(ctx, b, *served); fault != nil {
		changes, refused = []mcpclient.Change{*fault}, true
	} else {
		changes = reworded(pinned, *served)
		refused = b.PinWords && len(changes) > 0
	}
	texts := make([]string, len(changes))
	for i, c := range changes {
		texts[i] = c.String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := verdict{strings.Join(texts, "; "), refused, time.Now()}
	if was := s.verdicts[b.Tool]; was.reason == now.reason && was.refused == now.refused {
		now.since = was.since
	}
	s.verdicts[b.Tool] = now
	return changes, refused
}

// prove returns what keeps the tool from serving the capability, or nil. It fails closed: what
// cannot be read or decided does.
func (s *Server) prove(ctx context.Context, b Binding, served mcpclient.Contract) *mcpclient.Change {
	c := b.Capability
	if same(c, c.Input, served.InputSchema) == nil {
		theirs, err := s.compile(ctx, served.InputSchema)
		if err != nil {
			return note("inputSchema", "agentd cannot check it: %v", err)
		}
		if fault := s.contained(ctx, c.Input.Schema, theirs); fault != "" {
			return note("inputSchema", "it is not proven to take what the capability %s takes: %s", c.Name, fault)
		}
	}
	return s.proveOutput(ctx, b, served)
}

func (s *Server) proveOutput(ctx context.Context, b Binding, served mcpclient.Contract) *mcpclient.Change {
	const part = "outputSchema"
	c, answers := b.Capability, served.OutputSchema
	switch {
	case c.Result == capability.ResultMCP:
		answers = capability.MCPResultSchema(served.OutputSchema)
		if !hasMeta(c) {
			answers = withoutMeta(answers)
		}
	case b.Text == TextString:
		answers = json.RawMessage(`{"type":"string"}`)
	case b.Text == TextJSON:
		return nil // nothing is promised of a text: each answer is checked
	case answers == nil:
		return note(part, "the tool promises no structured content: say what its text is (text: json or string), or give the capability %s result: mcp", c.Name)
	}
	if c.Output == nil || c.Output.Schema == nil || same(c, c.Output, answers) != nil {
		return nil
	}
	theirs, err := s.compile(ctx, answers)
	if err != nil {
		return note(part, "agentd cannot check it: %v", err)
	}
	if fault := s.contained(ctx, theirs, c.Output.Schema); fault != "" {
		return note(part, "it is not proven that all answers fit the capability %s: %s", c.Name, fault)
	}
	return nil
}

// withoutMeta takes the metadata out of the schema of results. It stands last: what is like it
// before may be the server's.
func withoutMeta(results []byte) []byte {
	const meta = `,"_meta":{"type":"object"}`
	at := bytes.LastIndex(results, []byte(meta))
	return slices.Concat(results[:at], results[at+len(meta):])
}

// hasMeta reports whether the responses of a capability may have the metadata of results.
func hasMeta(c *capability.Capability) bool {
	if c.Output == nil {
		return true
	}
	var root struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(c.Output.Source, &root) != nil {
		return false
	}
	return root.Properties["_meta"] != nil
}

// same returns a digest that both schemas have, or nil. What was imported as it is needs no proof,
// even where there is none.
func same(c *capability.Capability, mine *capability.Contract, theirs json.RawMessage) *string {
	if c.SchemaProfile != capability.ProfileFull || mine == nil || theirs == nil {
		return nil
	}
	digest := func(source json.RawMessage) string {
		d, err := capability.ToolSchema{InputSchema: source, SchemaProfile: capability.ProfileFull}.ContractDigest("")
		if err != nil {
			return err.Error()
		}
		return d
	}
	if d := digest(mine.Source); d == digest(theirs) && strings.HasPrefix(d, "sha256:") {
		return &d
	}
	return nil
}

func (s *Server) compile(ctx context.Context, source json.RawMessage) (*schema.Schema, error) {
	return schema.CompileWithin(ctx, source, schema.CompileOptions{Profile: schema.ProfileFull}, s.opts.Compile)
}

// maxWitness bounds what a message shows of a value.
const maxWitness = 300

// contained returns why not all that a accepts is proven to be accepted by b, or "".
func (s *Server) contained(ctx context.Context, a, b *schema.Schema) string {
	switch proof := contain.IsSubschemaWithin(ctx, a, b, s.opts.Budget); proof.Answer {
	case contain.Proven:
		return ""
	case contain.Refuted:
		return "for example " + truncate.String(string(proof.Witness), maxWitness)
	default:
		return fmt.Sprintf("it cannot be decided (%s)", proof.Reason)
	}
}

// maxNote bounds what a message says of a schema.
const maxNote = 800

func note(part, format string, args ...any) *mcpclient.Change {
	return &mcpclient.Change{Part: part, Note: truncate.String(fmt.Sprintf(format, args...), maxNote)}
}
