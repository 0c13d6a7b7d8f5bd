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
		uid := userOf(tcp)
		if uid == unknownUser {
			t.Skip("this kernel has no sock_diag")
		}
		if uid != os.Geteuid() {
			t.Errorf("%s: user %d, and this process is of %d", at, uid, os.Getuid())
		}
		if linger, ok := far.(*net.TCPConn); ok {
			_ = linger.SetLinger(0)
		}
		_ = far.Close() // without a trace
		if uid := userOf(tcp); uid != unknownUser {
			t.Errorf("%s: the other end is gone, and of user %d", at, uid)
		}
	}
}

// A request whose sender has closed its end before anybody looked may be any user's. It is
// not served: the kernel would say that it is root's.
func TestClosedBeforeAccept(t *testing.T) {
	tcp, err := listenLoopback(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := func(user int) bool { return user == os.Geteuid() || user == 0 }
	l := &listener{TCPListener: tcp, strangers: &strangers{}, serves: own, refused: func() { t.Error("it counts as another user's") }}
	defer l.Close()
	connect := func() net.Conn {
		far, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return far
	}
	closed := connect()
	if _, err := closed.Write([]byte("POST / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	open := connect()
	defer open.Close()
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	if near.(*conn).user == unknownUser {
		t.Skip("this kernel has no sock_diag")
	}
	if near.RemoteAddr().String() != open.LocalAddr().String() {
		t.Error("a connection that was closed is accepted")
	}
}
