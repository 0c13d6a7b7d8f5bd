package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/internal/spelling"
)

// An MCPRequest is one `agentd mcp`.
type MCPRequest struct {
	// Agent is the id of the agent in whose name the client calls.
	Agent string
	// Options are what the command line says about the client.
	Options control.MCPOptions
}

const (
	// mcpPatience is how long an agent that starts or stops is waited for.
	mcpPatience = 20 * time.Second
	// mcpRetry is when it is asked again.
	mcpRetry = 100 * time.Millisecond
)

// MCP serves an MCP client on standard input and output, until the client closes its end
// or ctx ends: through the agent if it runs, else by running it in this process. Standard
// output carries the protocol alone.
func MCP(ctx context.Context, env *cli.Env, r MCPRequest) error {
	socket, err := mcpSocket(env, r.Agent)
	if err != nil {
		return err
	}
	client := control.NewClient(socket)
	defer client.Close()
	return eachWay(ctx, func(ctx context.Context) error {
		stream, err := client.MCPStream(ctx, r.Options)
		if err != nil {
			return err
		}
		return pipe(ctx, env, r.Agent, stream)
	}, func(ctx context.Context) error {
		return mcpAlone(ctx, env, r.Agent, func(ctx context.Context, d *daemon.Daemon) error {
			return d.ServeMCP(ctx, r.Options, &stdio{Reader: env.Stdin, Writer: env.Stdout})
		})
	})
}

// MCPListen serves MCP clients over HTTP, until ctx ends: through the agent if it runs, else
// by running it in this process. It prints where, and by which token, once it serves.
func MCPListen(ctx context.Context, env *cli.Env, agent string, o control.MCPListenOptions) error {
	socket, err := mcpSocket(env, agent)
	if err != nil {
		return err
	}
	client := control.NewClient(socket)
	defer client.Close()
	return eachWay(ctx, func(ctx context.Context) error {
		at, hold, err := client.MCPListen(ctx, o)
		if err != nil {
			return err
		}
		defer hold.Close()
		defer context.AfterFunc(ctx, func() { _ = hold.Close() })()
		if err := announceMCP(env, &at); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, hold); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return &cli.ExitError{Code: cli.ExitLost, Err: fmt.Errorf("the connection to the agent %s is lost: %w", agent, err)}
		}
		return &cli.ExitError{Code: cli.ExitLost, Err: fmt.Errorf("the agent %s has stopped, and serves no MCP clients any more", agent)}
	}, func(ctx context.Context) error {
		return mcpAlone(ctx, env, agent, func(ctx context.Context, d *daemon.Daemon) error {
			at, release, err := d.MCPListen(ctx, o)
			if err != nil {
				return err
			}
			defer release()
			if err := announceMCP(env, at); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
	})
}

// announceMCP prints where clients are served: for a script, the URL is the first line, and
// the token the second.
func announceMCP(env *cli.Env, at *control.MCPListening) error {
	if env.Format != output.Table {
		return env.WriteJSON(at)
	}
	_, err := fmt.Fprintln(env.Stdout, strings.TrimSpace(at.URL+"\n"+at.Token))
	return err
}

// mcpSocket returns the control socket of a member.
func mcpSocket(env *cli.Env, agent string) (string, error) {
	f, paths, err := env.InspectFleet()
	if err != nil {
		return "", err
	}
	if _, ok := f.Member(agent); !ok {
		ids := make([]string, len(f.Members))
		for i, m := range f.Members {
			ids[i] = m.ID
		}
		return "", cli.Usage("--agent: the fleet %s has no agent %q; it has %s", f.Name, agent, spelling.Among(agent, ids))
	}
	return paths.Socket(agent), nil
}

// eachWay connects to the agent that runs, or runs it. While it starts or stops elsewhere,
// neither is possible, for a moment.
func eachWay(ctx context.Context, connect, alone func(context.Context) error) error {
	for until := time.Now().Add(mcpPatience); ; {
		err := connect(ctx)
		if absent := new(control.NotRunningError); errors.As(err, &absent) {
			err = alone(ctx)
		}
		switch {
		case !passing(err) || time.Now().After(until):
			return err
		case ctx.Err() != nil:
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(mcpRetry):
		}
	}
}

// passing reports whether an error is that of an agent which starts or stops elsewhere.
func passing(err error) bool {
	if refused := new(control.RefusedError); errors.As(err, &refused) {
		return refused.Code == "not-ready"
	}
	return auditchain.CodeOf(err) == auditchain.CodeLocked
}

// pipe copies between the standard streams and the agent, until either has ended.
func pipe(ctx context.Context, env *cli.Env, agent string, stream *control.Stream) error {
	defer func() { _ = stream.Close() }()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	var clientLeft atomic.Bool
	go func() { // ends with standard input, or with the process
		_, err := io.Copy(stream, env.Stdin)
		clientLeft.Store(err == nil)
		_ = stream.CloseWrite()
	}()
	_, err := io.Copy(env.Stdout, stream)
	switch {
	case ctx.Err() != nil || clientLeft.Load():
		return nil
	case err != nil:
		err = fmt.Errorf("the connection to the agent %s is lost: %w", agent, err)
	default:
		err = fmt.Errorf("the agent %s has ended the session: it has stopped, or the client sent what is not the protocol; its log says which", agent)
	}
	return &cli.ExitError{Code: cli.ExitLost, Err: err}
}

// mcpAlone runs an agent in this process while serve does.
func mcpAlone(ctx context.Context, env *cli.Env, agent string, serve func(context.Context, *daemon.Daemon) error) error {
	s, stopHUP := newService(true)
	defer stopHUP()
	cfg, err := prepare(env)
	if err != nil {
		return err
	}
	s.out = console{env, cfg.Logger}
	s.ready = func() {
		s.out.say(fmt.Sprintf("agent %s runs in this process, for an MCP client.", agent), "ready", "agent", agent)
	}
	return daemon.Run(ctx, cfg, agent, func(ctx context.Context, d *daemon.Daemon) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		served := make(chan error, 1)
		go func() {
			defer cancel()
			served <- serve(ctx, d)
		}()
		err := s.untilDone(ctx, d)
		cancel() // the agent cannot go on
		if failed := <-served; !errors.Is(failed, context.Canceled) {
			err = errors.Join(err, failed)
		}
		return err
	})
}

// stdio is a stream of the two standard ones.
type stdio struct {
	io.Reader
	io.Writer
	once sync.Once
}

// Close implements io.Closer, more than once. A read that waits ends with the process,
// where closing does not end it.
func (s *stdio) Close() error {
	s.once.Do(func() {
		if in, ok := s.Reader.(io.Closer); ok {
			_ = in.Close() // nothing was written that could be lost
		}
	})
	return nil
}
