package control

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"
)

// userKey is the context key for the user of a connection.
type userKey struct{}

// withUser stores the user of the process at the other end of a connection, which
// the kernel reports. No header could be trusted with it.
func withUser(ctx context.Context, conn net.Conn) context.Context {
	uid, ok := peerUID(conn)
	if !ok {
		return ctx
	}
	name := fmt.Sprintf("uid:%d", uid)
	// A user that the system does not know, as in a container, is shown by number.
	if u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
		name = fmt.Sprintf("%s (uid:%d)", u.Username, uid)
	}
	return context.WithValue(ctx, userKey{}, name)
}

// userFrom returns the user of a request's connection.
func userFrom(ctx context.Context) string {
	if name, ok := ctx.Value(userKey{}).(string); ok {
		return name
	}
	return "unknown" // the folder of the socket admits its owner only
}
