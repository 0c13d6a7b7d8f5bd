package mcpclient

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/internal/descendants"
	"github.com/agentd/agentd/internal/mcpauth"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/rpc/span"
	"github.com/agentd/agentd/skill/sandbox"
)

// The two eras of the protocol, by the newest version of each that this package speaks.
const (
	Era2026 = "2026-07-28"
	Era2025 = "2025-11-25"
)

// Options say which server to connect to, and how. Either Command or URL is set.
type Options struct {
	// Name is the server's in logs and errors. Required.
	Name string
	// Command is a server that this process runs, URL one that others run.
	Command *Command
	URL     *Endpoint
	// Era is that of the server, [Era2026] or [Era2025]. "" finds out.
	Era string
	// Pinned are the contracts under which tools may be called. Nil calls no tool: the
	// server can only be looked at.
	Pinned []Contract
	// AcceptDescriptions has a tool whose description alone has changed reported, and
	// called nevertheless. A model reads descriptions: who changes one may steer the model.
	AcceptDescriptions bool
	// Judge compares a served contract with the pinned one, in place of [Changes] and
	// AcceptDescriptions. It returns what is to be reported of it, and whether that refuses
	// calls. served is nil where the server has no such tool. It is called one at a time, and
	// ends with ctx, which Close ends.
	Judge func(ctx context.Context, pinned Contract, served *Contract) (changes []Change, refused bool)
	// Roots are the URIs of folders that the server may ask for, and Elicit answers what it
	// asks of a person. Nil refuses it. Samples of a model are always refused.
	Roots  []string
	Elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)
	Limits Limits
	// Logger takes what happens to the connection, and what the program writes to standard
	// error. Nil discards it.
	Logger *slog.Logger
	// Tracer takes the spans of calls. Nil makes none.
	Tracer span.Tracer
	// Changed is called when the state has changed; it must return at once. It may be nil.
	Changed func()
}

// A Command is a program that speaks the protocol on standard input and output.
type Command struct {
	// Args are the program and its arguments. Required.
	Args []string
	// Dir is the working directory.
	Dir string
	// Env returns what is added to the environment, as NAME=value; nil adds nothing. It is
	// asked at each start, so that a secret which was renewed, or was missing, is found.
	Env func() ([]string, error)
	// Sandbox confines the program. Nil lets it do whatever this process may.
	Sandbox *sandbox.Sandbox
	// Descendants ends what the program leaves running outside of its process group. Nil
	// leaves that alone.
	Descendants *descendants.Member
	// Grace is how long the program may take to end, first by itself and then after SIGTERM.
	// The default is 2 s for each.
	Grace time.Duration
}

// An Endpoint is a server that is reached by HTTP.
type Endpoint struct {
	URL string
	// Policy returns what may be reached, and the credentials that are sent. It is asked at
	// each connection. Its bounds of bodies and time do not apply. Required.
	Policy func() (netguard.Policy, error)
	// Auth has the tokens with which the server lets this client in; nil sends none.
	Auth Authorizer
}

// An Authorizer has the tokens of a server, such as those of package mcpauth. Its errors are
// shown to callers where they are of that package.
type Authorizer interface {
	// Token returns the token of the next request; "" sends none.
	Token(ctx context.Context) (string, error)
	// Refused is asked when the server lets a request not in. It reports whether the request
	// is to be made again; if not, and without an error, the answer stands.
	Refused(ctx context.Context, r mcpauth.Refusal) (again bool, err error)
	// Renewed reports whether there is reason to connect again at once.
	Renewed() bool
	// Secrets are those that are taken out of what the server answers.
	Secrets() []string
}

// Limits bound a connection. A zero field means its default.
type Limits struct {
	// Pending is how many calls are under way at once; further ones are refused. Default 16.
	Pending int
	// PerMinute bounds the calls in a minute. 0 does not.
	PerMinute int
	// Timeout bounds a call. Default 1 min.
	Timeout time.Duration
	// MessageBytes bounds one message of the server. Default 4 MiB.
	MessageBytes int
	// StartTimeout bounds the making of a connection in one era, with the first list of
	// tools. Default 30 s.
	StartTimeout time.Duration
	// ProbeTimeout bounds the question which era a server speaks. One that does not answer
	// in time is tried again in the older era. Default 10 s.
	ProbeTimeout time.Duration
	// Relist is the longest time between two lists of tools, RelistPause the shortest. The
	// defaults are 5 min and 1 s.
	Relist, RelistPause time.Duration
	// MinBackoff and MaxBackoff are the pauses between attempts to connect. Defaults 500 ms
	// and 1 min.
	MinBackoff, MaxBackoff time.Duration
}

// The bounds of what a server lists, and of what it does on its own.
const (
	maxPages     = 100
	maxTools     = 1000
	maxListBytes = 16 << 20
	// maxAsked is how many requests of the server may wait for their answers.
	maxAsked = 64
	// maxGarbage is how many lines of a program's output may be no messages.
	maxGarbage = 100
)

func (l Limits) withDefaults() Limits {
	number := func(n *int, value int) {
		if *n <= 0 {
			*n = value
		}
	}
	duration := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	number(&l.Pending, 16)
	number(&l.MessageBytes, 4<<20)
	duration(&l.Timeout, time.Minute)
	duration(&l.StartTimeout, 30*time.Second)
	duration(&l.ProbeTimeout, 10*time.Second)
	duration(&l.Relist, 5*time.Minute)
	duration(&l.RelistPause, time.Second)
	duration(&l.MinBackoff, 500*time.Millisecond)
	duration(&l.MaxBackoff, time.Minute)
	l.ProbeTimeout = min(l.ProbeTimeout, l.StartTimeout)
	l.MaxBackoff = max(l.MaxBackoff, l.MinBackoff)
	return l
}

func (o *Options) check() error {
	switch {
	case o.Name == "":
		return errors.New("mcpclient: the server has no name")
	case (o.Command == nil) == (o.URL == nil):
		return errors.New("mcpclient: a server is either a command or a URL")
	case o.Command != nil && (len(o.Command.Args) == 0 || o.Command.Args[0] == ""):
		return errors.New("mcpclient: the command is empty")
	case o.URL != nil && o.URL.Policy == nil:
		return errors.New("mcpclient: the URL has no policy")
	case o.Era != "" && o.Era != Era2025 && o.Era != Era2026:
		return errors.New("mcpclient: the era is neither " + Era2025 + " nor " + Era2026)
	}
	return nil
}
