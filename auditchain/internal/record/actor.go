package record

import (
	"context"
	"os"
	"os/user"
	"strconv"

	"github.com/agentd/agentd/internal/truncate"
)

// maxActorText bounds the texts of an actor: a process chooses the name of its program.
const maxActorText = 512

// An Actor is who changed something that the log protects: a user of the operating
// system, and the process that asked for the change, as the kernel describes it.
type Actor struct {
	// UID and User are those of the process; nil and "" where they are not known.
	UID  *uint32 `json:"uid,omitempty"`
	User string  `json:"user,omitempty"`
	// PID is the process, and Executable the path of its program; 0 and "" where they are
	// not known.
	PID        int    `json:"pid,omitempty"`
	Executable string `json:"executable,omitempty"`
}

// actorKey is the context key for an Actor.
type actorKey struct{}

// WithActor returns a context in which changes are those of whom who returns. Without it
// they are this process's own. who is called for each change, and by nothing else: to
// find a user's name can take long.
func WithActor(ctx context.Context, who func() Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, who)
}

// ActorOf returns who makes the changes of a context.
func ActorOf(ctx context.Context) *Actor {
	who, ok := ctx.Value(actorKey{}).(func() Actor)
	if !ok {
		return ThisProcess()
	}
	a := who()
	a.User, a.Executable = truncate.String(a.User, maxActorText), truncate.String(a.Executable, maxActorText)
	return &a
}

// ThisProcess is the actor of a change that no other process has asked for.
func ThisProcess() *Actor {
	a := Actor{PID: os.Getpid()}
	a.Executable, _ = os.Executable() // "" where the system does not show it
	a.Executable = truncate.String(a.Executable, maxActorText)
	if uid := os.Getuid(); uid >= 0 {
		number := uint32(uid) //nolint:gosec // a user id has 32 bits
		a.UID = &number
		if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
			a.User = u.Username
		}
	}
	return &a
}
