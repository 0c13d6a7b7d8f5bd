package skillapi

import (
	"net"
	"os"
	"testing"
)

// The kernel says whose the other end of a connection is, by IPv4 and IPv6, and nothing
// of one that is gone. Not in parallel: a program that another test starts holds copies of
// the sockets for a moment.
func TestUserOf(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Logf("%s: %v", at, err) // a host without IPv6
			continue
		}
		defer l.Close()
		far, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		near, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		tcp, _ := near.(*net.TCPConn)
		uid, known := userOf(tcp)
		if !known {
			t.Skip("this kernel has no sock_diag")
		}
		if int(uid) != os.Geteuid() {
			t.Errorf("%s: user %d, and this process is of %d", at, uid, os.Getuid())
		}
		if linger, ok := far.(*net.TCPConn); ok {
			_ = linger.SetLinger(0)
		}
		_ = far.Close() // without a trace
		if uid, known := userOf(tcp); known {
			t.Errorf("%s: the other end is gone, and of user %d", at, uid)
		}
	}
}
