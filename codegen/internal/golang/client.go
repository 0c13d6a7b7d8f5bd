package golang

import (
	"fmt"

	"github.com/agentd/agentd/codegen/internal/model"
)

// client writes the type that makes calls: a method for each capability.
func (e *emitter) client() {
	e.Line("\n// A Client calls the capabilities of %s. It is safe for concurrent use if its Caller is.", e.api.Agent)
	e.Line("type Client struct{ caller typed.Caller }")
	e.Line("\n// NewClient makes a client that calls through caller.")
	e.Line("func NewClient(caller typed.Caller) *Client { return &Client{caller: caller} }")
	for _, c := range e.api.Capabilities {
		// A Ref, not the type itself, so that the signature shows the payload's
		// name.
		response := e.expr(&model.Type{Kind: model.Ref, Named: c.Response})
		e.doc(c.Ident, c.Doc, fmt.Sprintf("calls %s.", c.Name))
		e.Line("func (c *Client) %s(ctx context.Context, request %s, opts ...typed.CallOption) (%s, error) {",
			c.Ident, e.expr(&model.Type{Kind: model.Ref, Named: c.Request}), response)
		e.Line("return typed.Request[%s](ctx, c.caller, Address, %q, request, opts)\n}", response, c.Name)
	}
}

// server writes the interface that a callee implements, and its registration.
func (e *emitter) server() {
	e.Line("\n// A Server is the code behind the capabilities of %s. Its methods are called concurrently.", e.api.Agent)
	e.Line("type Server interface {")
	for _, c := range e.api.Capabilities {
		e.Line("// %s serves %s.", c.Ident, c.Name)
		e.Line("%s(ctx context.Context, request %s) (%s, error)", c.Ident,
			e.expr(&model.Type{Kind: model.Ref, Named: c.Request}), e.expr(&model.Type{Kind: model.Ref, Named: c.Response}))
	}
	e.Line("}")
	e.Line("\n// RegisterServer registers s for every capability.")
	e.Line("func RegisterServer(m *typed.Mux, s Server) {")
	for _, c := range e.api.Capabilities {
		e.Line("typed.Handle(m, %q, %q, s.%s)", c.Name, c.Skill, c.Ident)
	}
	e.Line("}")
}
