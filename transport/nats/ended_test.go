package nats_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/agentd/agentd/transport"
	"github.com/agentd/agentd/transport/nats"
)

// What the server says for good ends the connection, and is told.
func TestEndedForGood(t *testing.T) {
	t.Parallel()
	// No real server says such a thing on demand.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "INFO {\"server_id\":\"x\",\"version\":\"2.12.0\",\"max_payload\":1048576,\"proto\":1,\"headers\":true}\r\n")
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "PING") {
				fmt.Fprint(conn, "PONG\r\n-ERR 'Parser Error'\r\n")
			}
		}
	}()
	c, err := nats.Connect(t.Context(), nats.Options{Servers: []string{"nats://" + l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Ended():
	case <-time.After(20 * time.Second):
		t.Fatal("the connection goes on")
	}
	if !errors.Is(c.Err(), transport.Disconnected) {
		t.Errorf("Err is %v", c.Err())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-served
}
