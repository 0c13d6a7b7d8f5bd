package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// postRequest posts a file to the control API of a running agent as it is, as a
// program without an SDK does, and prints the response: post <agent> <file> [traceparent]
func postRequest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: post <agent> <file> [traceparent]")
	}
	sockets, err := filepath.Glob(filepath.Join(ts.Getenv("XDG_RUNTIME_DIR"), "agentd", "*", args[0]+".sock"))
	ts.Check(err)
	if len(sockets) != 1 {
		ts.Fatalf("the agent has %d sockets", len(sockets))
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", sockets[0])
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPost, "http://agentd/v1/request", bytes.NewReader([]byte(ts.ReadFile(args[1]))))
	ts.Check(err)
	if len(args) == 3 {
		req.Header.Set("traceparent", args[2])
	}
	resp, err := client.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(body)
	ts.Check(err)
}
