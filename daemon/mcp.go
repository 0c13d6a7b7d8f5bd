package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/mcpbridge"
	"github.com/agentd/agentd/mcpbridge/mcphttp"
	"github.com/agentd/agentd/mcpbridge/projection"
	"github.com/agentd/agentd/policy"
)

// An mcpFace serves the agent's peers to clients of the Model Context Protocol, as tools.
// It is there in every agent. What it costs begins with the first client.
type mcpFace struct {
	d       *Daemon
	limits  *policy.RateLimiter // of clients
	changes chan struct{}       // has room for one: the lists of tools are to be made anew
	guards  mcphttp.Guards      // of the bridges' servers, which outlive the endpoints
	// ctx ends when the agent stops, and running are what then has to end.
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	leaving departures // of servers and endpoints that were replaced

	mu       sync.Mutex
	closed   bool                           // guarded by mu
	bridges  map[mcpStyle]*mcpbridge.Bridge // guarded by mu
	pending  map[string]int                 // calls by client; guarded by mu
	streams  map[string]int                 // open streams by client; guarded by mu
	idle     chan struct{}                  // closed when no call is pending and none can begin; nil before drain; guarded by mu
	own      *mcpServer                     // that the files ask for, or nil; guarded by mu
	retired  map[*mcphttp.Handler]struct{}  // replaced, while calls still run there; guarded by mu
	held     []*mcpServer                   // those that operators hold open; guarded by mu
	draining bool                           // guarded by mu
}

// An mcpStyle is how tools are shown: what a client's command line may choose for itself.
type mcpStyle struct {
	bare         bool
	profile      string
	requestAgent bool
}

func styleOf(m *fleet.MCP) mcpStyle { return mcpStyle{m.Bare, m.Profile, m.RequestAgent} }

func newMCPFace(d *Daemon) *mcpFace {
	f := &mcpFace{
		d: d, limits: policy.NewRateLimiter(0), changes: make(chan struct{}, 1),
		bridges: map[mcpStyle]*mcpbridge.Bridge{}, pending: map[string]int{}, streams: map[string]int{},
		retired: map[*mcphttp.Handler]struct{}{},
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.running.Go(f.follow)
	return f
}

// changed has the lists of tools made anew: files were loaded, or a contract has drifted,
// or no longer does. It does not wait for that. The bound of messages changes at once.
func (f *mcpFace) changed() {
	if f == nil {
		return
	}
	for _, b := range f.open() {
		b.LimitFrames(f.frameBytes())
	}
	select {
	case f.changes <- struct{}{}:
	default: // somebody has said so already
	}
}

// follow makes the lists anew until the agent stops.
func (f *mcpFace) follow() {
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-f.changes:
		}
		for _, b := range f.open() {
			if err := b.Changed(); err != nil {
				f.d.log.Warn("the tools of an MCP client stay as they were", "error", err)
			}
		}
	}
}

// open are the bridges in use.
func (f *mcpFace) open() (all []*mcpbridge.Bridge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.bridges {
		all = append(all, b)
	}
	return all
}

// bridge returns the bridge of a style. There are as many as there are styles, few.
func (f *mcpFace) bridge(s mcpStyle) (*mcpbridge.Bridge, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errNotReady
	}
	b := f.bridges[s]
	if b == nil {
		options, err := f.options(s)
		if err != nil {
			return nil, err
		}
		b = mcpbridge.New(mcpBackend{f, nil}, options)
		f.bridges[s] = b
	}
	b.LimitFrames(f.frameBytes()) // a reload may have changed it since options were made
	return b, nil
}

func (f *mcpFace) options(s mcpStyle) (mcpbridge.Options, error) {
	var profile projection.Projection
	if s.profile != "" {
		var err error
		if profile, err = projection.Named(s.profile); err != nil {
			return mcpbridge.Options{}, err
		}
	}
	m := f.d.Member()
	return mcpbridge.Options{
		Name: m.ID, Version: f.d.cfg.Version, Instructions: m.Agent.Description, Bare: s.bare, Profile: profile, RequestAgent: s.requestAgent,
		// What a client may have pending is said by the files, which a reload changes: see take.
		MaxPending: fleet.MostMCPPending, MaxSessionPending: fleet.MostMCPPending, Logger: f.d.log,
		Secret: f.d.handleSecret(), Tracer: f.d.tracerOrNil(),
	}, nil
}

// minMCPFrame is how long a line of a stream may be whatever payloads may.
const minMCPFrame = 4 << 20

// frameBytes is how long a line of a stream may be, by the files in force.
func (f *mcpFace) frameBytes() int {
	return max(minMCPFrame, f.d.Member().Agent.Limits.MaxPayloadBytes+mcpBodyRoom)
}

// handleSecret signs the handles of durable calls. It is made of the agent's own key, so
// that they outlive the process; those of an agent without one do not. nil is a random one.
func (d *Daemon) handleSecret() []byte {
	secrets := d.ownSecrets("agentd: handles of MCP clients")
	if len(secrets) == 0 {
		return nil
	}
	return secrets[0]
}

// check reports tools that could not be listed with the files of a reload, or of the
// start. Files that say nothing of clients are not judged: then it is said to the client.
func (f *mcpFace) check(view mcpView) error {
	m := &view.member.Agent.MCP
	if m.Clients == nil && m.Listen == "" {
		return nil
	}
	options, err := f.options(styleOf(m))
	if err != nil {
		return err
	}
	b := mcpbridge.New(mcpBackend{f, &view}, options)
	defer b.Close(f.ctx) //nolint:errcheck // it has served nobody
	names := []string{fleet.AnonymousMCPClient}
	if m.Clients != nil {
		names = nil
	}
	for _, c := range m.Clients {
		names = append(names, c.Name)
	}
	for _, name := range names {
		if err := b.Check(mcpbridge.Client{Name: name}); err != nil {
			return fmt.Errorf("%s: mcp: %w", view.member.Agent.Path, err)
		}
	}
	return nil
}

// checkMCP is check for the files of the start.
func (d *Daemon) checkMCP(context.Context) error { return d.mcp.check(mcpBackend{d.mcp, nil}.files()) }

// styleFor returns how tools are shown where a command line has a say in it.
func (f *mcpFace) styleFor(o control.MCPOptions) (func() mcpStyle, error) {
	if o.Names != "" && o.Names != "bare" && o.Names != "full" {
		return nil, fmt.Errorf("names are full or bare, not %q", o.Names)
	}
	return func() mcpStyle {
		s := styleOf(&f.d.Member().Agent.MCP)
		if o.Names != "" {
			s.bare = o.Names == "bare"
		}
		s.profile = cmp.Or(o.Profile, s.profile)
		return s
	}, nil
}

// admit returns the client of a name that a command line has chosen, and how tools are
// shown to it.
func (f *mcpFace) admit(o control.MCPOptions) (c mcpbridge.Client, style func() mcpStyle, err error) {
	m := f.d.Member().Agent.MCP
	if style, err = f.styleFor(o); err != nil {
		return c, nil, err
	}
	if o.Client == "" && m.Clients != nil {
		return c, nil, fmt.Errorf("which client is it? mcp.clients of agent.yaml lists %s", spelling.Among("", clientNames(&m)))
	}
	c = mcpbridge.Client{Name: cmp.Or(o.Client, fleet.AnonymousMCPClient)}
	if err := c.Validate(); err != nil {
		return c, nil, err
	}
	if !m.Serves(c.Name) {
		return c, nil, fmt.Errorf("mcp.clients of agent.yaml has no client %q: it lists %s", c.Name, spelling.Among(c.Name, clientNames(&m)))
	}
	return c, style, nil
}

func clientNames(m *fleet.MCP) (names []string) {
	for _, c := range m.Clients {
		names = append(names, c.Name)
	}
	return names
}

// ServeMCP serves one session of an MCP client over a stream, until that or ctx ends; see
// [Daemon.MCPStream].
func (d *Daemon) ServeMCP(ctx context.Context, o control.MCPOptions, stream io.ReadWriteCloser) error {
	serve, err := d.MCPStream(o)
	if err != nil {
		return errors.Join(err, stream.Close())
	}
	return serve(ctx, stream)
}

// MCPStream implements [control.MCP]. The error says what is wrong with the options, or
// with the tools of the client, before anything is served.
func (d *Daemon) MCPStream(o control.MCPOptions) (serve func(context.Context, io.ReadWriteCloser) error, err error) {
	f := d.mcp
	if !d.ready.Load() {
		return nil, errNotReady
	}
	client, style, err := f.admit(o)
	if err != nil {
		return nil, err
	}
	b, err := f.bridge(style())
	if err != nil {
		return nil, err
	}
	if _, err := b.Server(client); err != nil { // two tools of one name
		return nil, err
	}
	return func(ctx context.Context, stream io.ReadWriteCloser) error {
		if !f.begin(client.Name) {
			return errors.Join(errNotReady, stream.Close())
		}
		defer f.end(client.Name)
		d.log.Info("an MCP client has come", "client", client.Name)
		err := b.ServeStream(ctx, client, stream)
		if err != nil {
			d.log.Warn("the session of an MCP client has failed", "client", client.Name, "error", err)
		} else {
			d.log.Info("an MCP client has gone", "client", client.Name)
		}
		return err
	}, nil
}

// status lists the clients that are served, by name.
func (f *mcpFace) status() (all []control.MCPClient) {
	sessions := map[string]int{}
	for _, b := range f.open() {
		for name, n := range b.Sessions() {
			sessions[name] += n
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	names := maps.Clone(f.streams)
	for name := range sessions {
		names[name] += 0
	}
	for name := range f.pending {
		names[name] += 0
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, control.MCPClient{Client: name, Streams: f.streams[name], Pending: f.pending[name], Sessions: sessions[name]})
	}
	return all
}

// begin counts a stream. It returns false once the agent stops.
func (f *mcpFace) begin(client string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.running.Add(1)
	f.streams[client]++
	return true
}

func (f *mcpFace) end(client string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams[client]--; f.streams[client] == 0 {
		delete(f.streams, client)
	}
	f.running.Done()
}

// drain lets calls that run end, until ctx ends, and begins no others.
func (f *mcpFace) drain(ctx context.Context) {
	f.mu.Lock()
	f.draining = true
	if f.idle == nil {
		f.idle = make(chan struct{})
		if len(f.pending) == 0 {
			close(f.idle)
		}
	}
	idle := f.idle
	f.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// finish lets the calls that run end, and their answers reach the clients. It takes no more
// than half of the time that is left: a call that waits for a person, or a client that does
// not read, must not use up that of the calls which others have made to the agent.
func (f *mcpFace) finish(ctx context.Context) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	f.drain(ctx)
	f.mu.Lock()
	f.closed = true
	serving := slices.Collect(maps.Keys(f.retired))
	for _, s := range f.serving() {
		serving = append(serving, s.current.Load().handler)
	}
	f.mu.Unlock()
	for _, b := range f.open() {
		b.Drain(ctx)
	}
	for _, h := range serving {
		h.Drain(ctx)
	}
}

// close ends all sessions and calls, and waits for them until ctx ends. It may be called on
// a nil face.
func (f *mcpFace) close(ctx context.Context) error {
	if f == nil {
		return nil
	}
	f.finish(ctx)
	f.stop()
	var errs []error
	for _, s := range f.servers() {
		errs = append(errs, s.Close(ctx))
	}
	for _, b := range f.open() {
		errs = append(errs, b.Close(ctx))
	}
	ended := make(chan struct{})
	go func() { // ends with the last stream, which the bridges have closed
		f.running.Wait()
		f.leaving.wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		errs = append(errs, ctx.Err())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("MCP clients: %w", err)
	}
	return nil
}
