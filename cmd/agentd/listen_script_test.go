package main

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// httpGet asks the server whose URL is in the log of a process, and prints what it says:
// httpget <log> <path> <status>
func httpGet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: httpget <log> <path> <status>")
	}
	_, rest, _ := strings.Cut(ts.ReadFile(args[0]), "probes and metrics are served")
	_, rest, _ = strings.Cut(rest, "url=")
	url, _, _ := strings.Cut(rest, "\n")
	resp, err := http.Get(url + args[1])
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if strconv.Itoa(resp.StatusCode) != args[2] {
		ts.Fatalf("%s: %d, want %s: %s", args[1], resp.StatusCode, args[2], body)
	}
	_, err = ts.Stdout().Write(body)
	ts.Check(err)
}
