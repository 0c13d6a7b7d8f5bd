package control

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"
)

// userKey is where a connection's context has its user.
type userKey struct{}

// withUser notes who is at the other end of a connection: the kernel says so.
func withUser(ctx context.Context, conn net.Conn) context.Context {
	uid, ok := peerUID(conn)
	if !ok {
		return ctx
	}
	name := fmt.Sprintf("uid:%d", uid)
	if u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
		name = fmt.Sprintf("%s (uid:%d)", u.Username, uid)
	}
	return context.WithValue(ctx, userKey{}, name)
}

// userFrom is the user of a request's connection.
func userFrom(ctx context.Context) string {
	if name, ok := ctx.Value(userKey{}).(string); ok {
		return name
	}
	return "unknown" // only the owner of the socket's folder gets here
}
