//go:build !linux

package control

import "net"

// peerUID knows nothing here. The socket is in a folder of the owner's own.
func peerUID(net.Conn) (uid uint32, ok bool) { return 0, false }
