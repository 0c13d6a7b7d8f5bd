package mcpbridge

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentd/agentd/mcpbridge/projection"
	"github.com/agentd/agentd/rpc/span"
)

// Options configure a [Bridge]. The zero value is what most want.
type Options struct {
	// Name and Version are how the servers name themselves to clients. The defaults are
	// agentd and dev.
	Name, Version string
	// Instructions are for the client's model, about all tools.
	Instructions string
	// Bare leaves the peer out of a tool's name where no other peer's capability is called
	// the same.
	Bare bool
	// Profile writes the schemas of arguments for a provider of models; nil leaves them
	// as the contracts have them. What judges arguments is the contract either way.
	Profile projection.Projection
	// RequestAgent adds the tool request_agent, which calls by the names of agent and
	// capability.
	RequestAgent bool
	// MaxRepairs is how many times in a turn a model may correct the arguments of a tool.
	// The default is 1; negative means never.
	MaxRepairs int
	// MaxPending bounds the calls of one client that run or wait at once, and
	// MaxSessionPending those of one of its sessions. The defaults are 64 and 32.
	MaxPending, MaxSessionPending int
	// MaxFrameBytes bounds one message of a stream. The default is 4 MiB.
	MaxFrameBytes int
	// Secret signs handles and the state of requests. Those of a secret that is kept,
	// of 32 bytes or more, outlive the process; without one it is random.
	Secret []byte
	// Tracer takes the spans of clients' requests; nil makes none.
	Tracer span.Tracer
	// Logger gets what no client is told; nil is nowhere.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	setDefault(&o.Name, "agentd")
	setDefault(&o.Version, "dev")
	setDefault(&o.MaxRepairs, 1)
	setDefault(&o.MaxPending, 64)
	setDefault(&o.MaxSessionPending, 32)
	setDefault(&o.MaxFrameBytes, 4<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if len(o.Secret) < 32 {
		o.Secret = make([]byte, 32)
		_, _ = rand.Read(o.Secret) // which cannot fail
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// A Bridge serves the capabilities that an agent may call to clients of the Model Context
// Protocol, as tools. It is safe for concurrent use.
type Bridge struct {
	backend Backend
	opts    Options
	// ctx ends with the bridge, and with it every call that outlives its request.
	ctx  context.Context
	stop context.CancelFunc
	// waiting ends before that, when the bridge is drained: then nobody waits any more for
	// what others do.
	waiting     context.Context
	stopWaiting context.CancelFunc
	// longest is what a message of a stream may have now, in bytes.
	longest atomic.Int64
	// running counts the calls and the streams.
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool             // guarded by mu
	faces  map[string]*face // by the client's name; guarded by mu
	asked  uint64           // counts the uses of faces; guarded by mu
	// streams are those that are served; guarded by mu.
	streams map[*lineConn]struct{}
}

// New returns a bridge to a backend.
func New(b Backend, o Options) *Bridge {
	made := &Bridge{backend: b, opts: o.withDefaults(), faces: map[string]*face{}, streams: map[*lineConn]struct{}{}}
	made.LimitFrames(made.opts.MaxFrameBytes)
	made.ctx, made.stop = context.WithCancel(context.Background())
	made.waiting, made.stopWaiting = context.WithCancel(made.ctx)
	return made
}

// errClosed is the error of a bridge that has been closed.
var errClosed = errors.New("mcpbridge: the bridge is closed")

// maxIdle is how many clients that have neither sessions nor calls a bridge keeps in mind.
// Whoever starts a client may give it any name, where the files list none.
const maxIdle = 64

// Server returns the server for a client. It is made at the first call and kept, so that
// all of the client's sessions have the same tools. Of many clients that are gone, those
// that were there last are kept. The error is for a name that no
// client can have, for tools that cannot be listed, and for two that would have one name.
func (b *Bridge) Server(c Client) (*mcp.Server, error) {
	f, err := b.face(c)
	if err != nil {
		return nil, err
	}
	return f.server, nil
}

func (b *Bridge) face(c Client) (*face, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	b.asked++
	if f, ok := b.faces[c.Name]; ok {
		f.asked = b.asked
		return f, nil
	}
	f, err := newFace(b, c)
	if err != nil {
		return nil, err
	}
	f.asked = b.asked
	b.forgetIdle()
	b.faces[c.Name] = f
	return f, nil
}

// forgetIdle makes room for another client. b.mu is held.
func (b *Bridge) forgetIdle() {
	idle := 0
	var oldest *face
	for _, f := range b.faces {
		if f.idle() {
			idle++
			if oldest == nil || f.asked < oldest.asked {
				oldest = f
			}
		}
	}
	if idle >= maxIdle {
		delete(b.faces, oldest.client.Name)
	}
}

// Sessions counts the open sessions of clients, over streams and over HTTP. Clients without one are
// not in it.
func (b *Bridge) Sessions() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]int{}
	for name, f := range b.faces {
		for range f.server.Sessions() {
			all[name]++
		}
	}
	return all
}

// Changed makes the lists of tools and resources anew, and notifies clients of those that
// differ. It is for files that were loaded, permissions that were changed, and contracts
// that drifted. The error names what could not be listed; such a client keeps the tools
// that it had, and its calls are still judged by what is in force.
func (b *Bridge) Changed() error {
	b.mu.Lock()
	faces := slices.Collect(maps.Values(b.faces))
	b.mu.Unlock()
	var errs []error
	for _, f := range faces {
		errs = append(errs, f.refresh())
	}
	return errors.Join(errs...)
}

// LimitFrames replaces [Options].MaxFrameBytes, also for streams that are served. It counts
// from the next message on.
func (b *Bridge) LimitFrames(bytes int) { b.longest.Store(int64(bytes)) }

// Check reports whether the tools of a client can be listed, without serving them: a
// fault of the files is better found when they are loaded.
func (b *Bridge) Check(c Client) error {
	if err := c.Validate(); err != nil {
		return err
	}
	_, err := b.list(c)
	return err
}

// Close ends all streams, sessions and calls, and waits for them until ctx ends.
func (b *Bridge) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	faces := slices.Collect(maps.Values(b.faces))
	b.mu.Unlock()
	b.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, f := range faces {
			for s := range f.server.Sessions() {
				_ = s.Close() // waits for the session's requests, which end with the bridge
			}
		}
		b.running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin counts something that Close waits for. It returns false once the bridge is closed.
func (b *Bridge) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Add(1)
	return true
}
