package control

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"sync"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/procmark"
)

// A peer is the process at the other end of a connection, as the kernel describes it. No
// header could be trusted with that.
type peer struct {
	// pid and uid are those of the process when it connected. known is set if the system
	// shows uid, and pid is 0 where it does not show that.
	known bool
	pid   int
	uid   uint32
	// executable is the path of its program, or "" where that is not shown.
	executable string
	// user returns the name of the user uid, or "". It asks the system's name service,
	// once.
	user func() string
	// mark says which call's skill it belongs to.
	mark procmark.Mark
	// descends is set for a descendant of this process.
	descends bool
	// err is why the process could not be examined. Then the rest counts for nothing.
	err error
}

// peerKey is the context key for the peer of a connection.
type peerKey struct{}

// withPeer examines the process at the other end of a connection. It does so before the
// first byte is read: who connected and has ended by then is not known any more.
// The server accepts no other connection meanwhile. That is why the user's name, for
// which a directory elsewhere may be asked, is looked up when something needs it.
func withPeer(ctx context.Context, conn net.Conn, nameOf func(uid uint32) string) context.Context {
	p := examine(conn)
	p.user = sync.OnceValue(func() string { return nameOf(p.uid) })
	return auditchain.WithActor(context.WithValue(ctx, peerKey{}, p), p.actor)
}

// peerFrom returns the peer of a request's connection.
func peerFrom(ctx context.Context) *peer {
	if p, ok := ctx.Value(peerKey{}).(*peer); ok {
		return p
	}
	return &peer{}
}

// actor is what a record says of the process. It may wait for the name service.
func (p *peer) actor() auditchain.Actor {
	if !p.known {
		return auditchain.Actor{User: unknownUser}
	}
	return auditchain.Actor{UID: &p.uid, User: p.user(), PID: p.pid, Executable: p.executable}
}

// unknownUser is the user where the system does not show it. The folder of the socket
// admits its owner only.
const unknownUser = "unknown"

// userName is a user's name, or "" for one that the system does not know, as in a
// container.
func userName(uid uint32) string {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return ""
	}
	return u.Username
}

// userFrom describes the user of a request's connection. It may wait for the name service.
func userFrom(ctx context.Context) string {
	p := peerFrom(ctx)
	if !p.known {
		return unknownUser
	}
	if name := p.user(); name != "" {
		return fmt.Sprintf("%s (uid:%d)", name, p.uid)
	}
	return fmt.Sprintf("uid:%d", p.uid)
}

// fault returns why a peer is no operator, or "" for one. own is this process's own mark:
// an agentd that runs inside a skill has operators there. Unless alone is set, the process
// has other descendants than skills.
func (p *peer) fault(own procmark.Mark, alone bool) string {
	switch {
	case p.err != nil:
		return p.err.Error()
	case p.pid != 0 && p.pid == os.Getpid():
		return ""
	case p.known && p.uid != 0 && int64(p.uid) != int64(os.Getuid()):
		return "it runs as another user"
	case p.mark != procmark.None && p.mark != own:
		return "it belongs to a skill"
	case alone && p.descends:
		return "this agentd has started it, or what started it"
	}
	return ""
}
