package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Resolve turns the capabilities of an agent into what it may use. The error is a
// [*LoadError] with all faults; nothing has been started then, or what was is closed.
// The caller closes the result.
func (r *Registry) Resolve(ctx Context, caps []Capability) (*Resolved, error) {
	if ctx.Context == nil {
		ctx.Context = context.Background()
	}
	ctx.Logger = loggerOf(ctx)
	plans, err := r.plan(ctx, caps)
	if err != nil {
		return nil, err
	}
	out := &Resolved{tools: map[string]owned{}, merged: newMCP("agentd", "1")}
	var bad faults
	for _, p := range plans {
		status, server, ok := p.resolve(ctx, &bad)
		if !ok {
			continue
		}
		out.status = append(out.status, status)
		if server == nil {
			continue
		}
		if err := out.add(ctx, server); err != nil {
			addResolverFault(p.Capability, err, &bad)
		}
	}
	if err := bad.err(); err != nil {
		if failed := out.Close(ctx); failed != nil {
			ctx.Logger.LogAttrs(ctx, slog.LevelWarn, "a capability did not close", slog.Any("error", failed))
		}
		return nil, err
	}
	return out, nil
}

// Check reports the faults of capabilities that can be found without starting anything.
// The error is that of [Registry.Resolve].
func (r *Registry) Check(ctx Context, caps []Capability) error {
	if ctx.Context == nil {
		ctx.Context = context.Background()
	}
	ctx.Logger = loggerOf(ctx)
	_, err := r.plan(ctx, caps)
	return err
}

// CheckConfig reports where the configuration of a capability breaks the schema of its
// resolver. The error is that of [Registry.Resolve].
func (r *Registry) CheckConfig(c Capability) error {
	var bad faults
	e, ok, hint := r.find(c.Key)
	if !ok {
		bad.add(c.Position, fmt.Sprintf("unknown capability %q", c.Key), hint)
		return bad.err()
	}
	_, config, err := split(c.Config)
	if err != nil {
		bad.add(c.At(""), "its configuration is not a JSON object: "+err.Error(), "")
		return bad.err()
	}
	checkConfig(c, e.config, config, &bad)
	return bad.err()
}

// loggerOf is the context's logger, or one that discards.
func loggerOf(ctx Context) *slog.Logger {
	if ctx.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return ctx.Logger
}

// resolve asks the resolver for the capability's server, and does not take its word
// for what the server has.
func (p *plan) resolve(ctx Context, bad *faults) (st Status, server *Server, ok bool) {
	st = Status{Key: p.Key, Skipped: p.skipped}
	if p.skipped != "" {
		return st, nil, true
	}
	server, err := p.resolver.Resolve(ctx, Config{Tools: slices.Clone(p.config.Tools), JSON: slices.Clone(p.config.JSON)})
	if why, skip := skippedFor(err); skip {
		st.Skipped = why
		return st, nil, true
	}
	switch {
	case err != nil:
		addResolverFault(p.Capability, err, bad)
		return st, nil, false
	case server == nil:
		st.Skipped = "its resolver has nothing for this agent"
		return st, nil, true
	}
	server.name, server.allowed = p.Key, p.config.Tools
	if err := server.verify(ctx); err != nil {
		addResolverFault(p.Capability, errors.Join(err, server.Close()), bad)
		return st, nil, false
	}
	for _, t := range server.tools {
		st.Tools = append(st.Tools, t.def.Name)
	}
	for _, key := range p.config.Tools {
		if p.listed && !slices.Contains(st.Tools, key) {
			bad.add(p.At("/tools"), fmt.Sprintf("the capability %q does not give the tool %q with this configuration", p.Key, key), "take it out of the list, or configure what it needs")
		}
	}
	return st, server, true
}

// verify lists the tools of a server as a client sees them: all must be allowed.
func (s *Server) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	session, err := connect(ctx, s.server)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // in memory, and nothing is under way
	for def, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if !slices.Contains(s.allowed, def.Name) {
			return fmt.Errorf("its server has the tool %q, which is not among those that it may have: %q", def.Name, s.allowed)
		}
		if !slices.ContainsFunc(s.tools, func(t *tool) bool { return t.def.Name == def.Name }) {
			s.tools = append(s.tools, s.foreign(def))
		}
	}
	return nil
}

// foreign is a tool that was added to the server of the SDK directly. It is called
// through a session of its own, because that is the only way to it.
func (s *Server) foreign(def *mcp.Tool) *tool {
	return &tool{def: def, run: func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		session, err := connect(Bind(ctx), s.server)
		if err != nil {
			return nil, err
		}
		defer func() { _ = session.Close() }()
		params := &mcp.CallToolParams{Name: def.Name}
		if args != nil {
			params.Arguments = args
		}
		return session.CallTool(ctx, params)
	}}
}
