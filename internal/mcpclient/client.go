package mcpclient

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/mcpauth"
)

// A Client keeps the connection to one server up, and calls its tools. It is safe for
// concurrent use.
type Client struct {
	opts   Options
	log    *slog.Logger
	mcp    *mcp.Client
	pinned map[string]Contract

	slots    chan struct{}
	rate     *rate.Limiter
	progress progresses
	asked    atomic.Bool // the server has asked for what it may not have

	start  sync.Once
	life   context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when run has ended

	changed    chan struct{} // the list of tools is to be read again
	generation atomic.Int64  // counts the changes of it that the server has reported

	mu             sync.Mutex
	era            string
	link           *link         // nil while there is no connection
	wait           chan struct{} // what calls wait for: an attempt to connect, or a list; nil for nothing
	cause          error         // why there is no connection
	away           bool          // that has been reported
	login          bool          // that it takes a login has been reported
	unreached      bool          // the last attempt to connect has failed
	since          time.Time
	implementation string
	deviations     []Deviation
	further        []string
}

// A State is how it stands with a server.
type State struct {
	Connected bool `json:"connected"`
	// Era is the one in which it was spoken to last; "" before that.
	Era string `json:"era,omitempty"`
	// Implementation is what the server calls itself.
	Implementation string `json:"implementation,omitempty"`
	// Since is when the connection was made, or lost.
	Since time.Time `json:"since,omitzero"`
	// Cause is why there is no connection, NeedsLogin whether that ends when somebody logs in.
	Cause      string `json:"cause,omitempty"`
	NeedsLogin bool   `json:"needsLogin,omitempty"`
	// Deviations are the pinned tools that the server serves otherwise, Further those that
	// are not pinned.
	Deviations []Deviation `json:"deviations,omitempty"`
	Further    []string    `json:"further,omitempty"`
}

// New returns a client, which connects when Start is called.
func New(o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Limits = o.Limits.withDefaults()
	c := &Client{
		opts: o, log: slog.New(slog.DiscardHandler), pinned: map[string]Contract{},
		slots: make(chan struct{}, o.Limits.Pending), done: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	if o.Logger != nil {
		c.log = o.Logger.With("server", o.Name)
	}
	for _, p := range o.Pinned {
		c.pinned[p.Name] = p
	}
	if n := o.Limits.PerMinute; n > 0 {
		c.rate = rate.NewLimiter(rate.Every(time.Minute/time.Duration(n)), n)
	}
	c.life, c.cancel = context.WithCancel(context.Background())
	c.mcp = c.library()
	return c, nil
}

// library makes the client of the protocol's library. It offers the server nothing but what
// was allowed.
func (c *Client) library() *mcp.Client {
	opts := &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ElicitationHandler:          c.opts.Elicit,
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { c.listChanged() },
		ProgressNotificationHandler: c.progress.handle,
		// An input that is asked for is an error of the call where nobody can give it.
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: c.opts.Elicit == nil && len(c.opts.Roots) == 0},
	}
	if len(c.opts.Roots) > 0 {
		opts.Capabilities.RootsV2 = &mcp.RootCapabilities{} //nolint:staticcheck // servers of the older era use it
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "agentd", Version: "1"}, opts)
	for _, uri := range c.opts.Roots {
		client.AddRoots(&mcp.Root{URI: uri}) //nolint:staticcheck // as above
	}
	client.AddReceivingMiddleware(c.refuseRequests)
	client.AddSendingMiddleware(freshLists)
	return client
}

// freshLists lets no list of tools answer the next request for it. The library keeps one for as
// long as the server says, which would put off for as long that it is compared again, and have
// a call go out with the headers that the server has just refused.
func freshLists(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if list, ok := result.(*mcp.ListToolsResult); ok && list != nil {
			list.TTLMs = 0
		}
		return result, err
	}
}

// Start begins to connect, in the background. Once is enough.
func (c *Client) Start() {
	c.start.Do(func() {
		c.trying()
		go c.run(c.life)
	})
}

// Close ends the connection with all calls, and returns when nothing is left of it. It closes the
// [Authorizer], too, where that can be closed.
func (c *Client) Close() error {
	c.cancel()
	c.start.Do(func() { close(c.done) }) // it was never started
	<-c.done
	if c.opts.URL != nil {
		if auth, ok := c.opts.URL.Auth.(interface{ Close() }); ok {
			auth.Close()
		}
	}
	return nil
}

// State returns how it stands.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{
		Connected: c.link != nil, Era: c.era, Implementation: c.implementation, Since: c.since,
		Deviations: slices.Clone(c.deviations), Further: slices.Clone(c.further),
	}
	if c.cause != nil {
		s.Cause, s.NeedsLogin = shown(c.cause.Error()), needsLogin(c.cause)
	}
	return s
}

// Pending is how many calls are under way.
func (c *Client) Pending() int { return len(c.slots) }

// await returns the connection once it is settled whether there is one, and what the server
// serves.
func (c *Client) await(ctx context.Context) (*link, error) {
	for {
		c.mu.Lock()
		l, wait, cause := c.link, c.wait, c.cause
		c.mu.Unlock()
		switch {
		case wait != nil:
			select {
			case <-wait:
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-c.life.Done():
				return nil, errorf(Away, "the connection to the MCP server %s was closed", c.opts.Name).because(errClosed)
			}
		case l != nil:
			return l, nil
		default:
			if denied := (*mcpauth.Error)(nil); errors.As(cause, &denied) {
				e := errorf(Denied, "%s", denied.Text).because(denied)
				e.Retryable = soon(denied)
				return nil, e
			}
			return nil, errorf(Away, "the MCP server %s is not there at the moment%s", c.opts.Name, public(cause)).because(cause).retryable()
		}
	}
}

// public is as much of a cause as a caller may see: not what a program has written, and no
// path.
func public(cause error) string {
	wrong, exit := misbehaved(""), (*exitError)(nil)
	switch {
	case errors.As(cause, &wrong):
		return ": " + wrong.Error()
	case errors.As(cause, &exit):
		return ": " + exit.text
	case errors.Is(cause, errNoAnswer):
		return ": " + errNoAnswer.Error()
	}
	if f := failure.As(cause); f != nil {
		return ": " + f.Text
	}
	return ""
}

func (c *Client) knownEra() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opts.Era != "" {
		return c.opts.Era
	}
	return c.era
}

func (c *Client) rememberEra(era string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era = era
}

// A Listing is what a server serves.
type Listing struct {
	Implementation, Era string
	Tools               []Contract // by name
}

// List connects once, and returns what the server serves.
func List(ctx context.Context, o Options) (*Listing, error) {
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	defer c.cancel()
	l, tools, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	out := &Listing{Era: l.era, Tools: tools.sorted()}
	if info := l.session.InitializeResult().ServerInfo; info != nil {
		out.Implementation = shown(info.Name + " " + info.Version)
	}
	_ = l.close(errClosed) // what it served is known
	return out, nil
}
