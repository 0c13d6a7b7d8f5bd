//go:build !linux && !darwin

package control

import "net"

// examine knows nothing here. The mode of the socket's folder keeps other users out,
// and nothing tells skills and operators apart.
func examine(net.Conn) *peer { return &peer{} }
