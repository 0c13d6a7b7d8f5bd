//go:build !linux && !darwin

package control

import "net"

// examine knows nothing here. The mode of the socket's folder keeps other users out;
// skills are not told from operators.
func examine(net.Conn) *peer { return &peer{} }
