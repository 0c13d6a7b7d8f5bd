package skillapi

import (
	"io"
	"net"
	"testing"
	"time"
)

// The oldest of too many are cut; one that has named its call is not among them, and when
// all are cut none is taken in any more.
func TestStrangersAreBounded(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all strangers
	connect := func() (near *conn, far net.Conn) {
		far, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = far.Close() })
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		tcp, _ := accepted.(*net.TCPConn)
		near = all.add(tcp, unknownUser)
		t.Cleanup(func() { _ = near.Close() })
		return near, far
	}
	ended := func(far net.Conn) bool {
		_ = far.SetReadDeadline(time.Now().Add(time.Minute))
		_, err := far.Read(make([]byte, 1))
		return err == io.EOF
	}
	guest, far := connect()
	all.leave(guest)
	all.leave(guest) // a second time changes nothing
	const extra = 5
	var others [maxStrangers + extra]net.Conn
	for i := range others {
		_, others[i] = connect()
	}
	for i, far := range others[:extra] {
		if !ended(far) {
			t.Errorf("the stranger %d is still there", i)
		}
	}
	if n := all.all.Len(); n != maxStrangers {
		t.Errorf("there are %d strangers, want %d", n, maxStrangers)
	}
	all.cut()
	for i, far := range others[extra:] {
		if !ended(far) {
			t.Errorf("the stranger %d is still there", extra+i)
		}
	}
	if _, far := connect(); !ended(far) || all.all.Len() != 0 {
		t.Errorf("a stranger was taken in at the end; there are %d", all.all.Len())
	}
	if _, err := guest.Write([]byte("x")); err != nil {
		t.Errorf("the guest: %v", err)
	}
	if n, err := far.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("the guest: %d, %v", n, err)
	}
}
