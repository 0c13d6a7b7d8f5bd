package main

import (
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentd/agentd/internal/smtptest"
)

// services are what the agents of scripts reach: a mail server and a web server for each
// script that starts them.
type services struct {
	mu    sync.Mutex
	mails map[string]*smtptest.Server // guarded by mu, by the script's folder
	webs  map[string]*webServer       // guarded by mu
}

func newServices() *services {
	return &services{mails: map[string]*smtptest.Server{}, webs: map[string]*webServer{}}
}

// mailServer starts a mail server that demands TLS and a password: mailserver <password>.
// $MAIL is its address, and $MAIL_CA the file with its certificate.
func (s *services) mailServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mailserver <password>")
	}
	folder := ts.MkAbs(".mail")
	ts.Check(os.MkdirAll(folder, 0o700))
	server, stop, err := smtptest.Run(folder, smtptest.Options{Password: args[0]})
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv("MAIL", server.Addr)
	ts.Setenv("MAIL_CA", server.CAFile)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails[ts.Getenv("WORK")] = server
}

// printMails prints what the mail server has taken, one JSON object a line: mails
func (s *services) printMails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: mails")
	}
	s.mu.Lock()
	server := s.mails[ts.Getenv("WORK")]
	s.mu.Unlock()
	for _, m := range server.Mails() {
		printLine(ts, map[string]any{"from": m.From, "to": m.To, "user": m.User, "tls": m.TLS, "data": string(m.Data)})
	}
}

// webServer starts a web server that speaks TLS: webserver. $WEB is its address, and
// $WEB_CA the file with its certificate.
func (s *services) webServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: webserver")
	}
	web := &webServer{}
	server := httptest.NewUnstartedServer(web)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that break off
	server.StartTLS()
	ts.Defer(func() { server.CloseClientConnections(); server.Close() })
	ca := ts.MkAbs(".web-ca.pem")
	ts.Check(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	ts.Setenv("WEB", server.Listener.Addr().String())
	ts.Setenv("WEB_CA", ca)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webs[ts.Getenv("WORK")] = web
}

// printRequests prints what the web server was asked for, one JSON object a line: requests
func (s *services) printRequests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: requests")
	}
	s.mu.Lock()
	web := s.webs[ts.Getenv("WORK")]
	s.mu.Unlock()
	for _, r := range web.all() {
		printLine(ts, r)
	}
}

func printLine(ts *testscript.TestScript, v any) {
	e := json.NewEncoder(ts.Stdout())
	e.SetEscapeHTML(false)
	ts.Check(e.Encode(v))
}

// A webServer answers as the services that agents use do, and as those that attack them.
type webServer struct {
	mu       sync.Mutex
	requests []webRequest // guarded by mu
}

type webRequest struct {
	Method        string `json:"method"`
	URL           string `json:"url"`
	Authorization string `json:"authorization"`
	Type          string `json:"type"`
	Body          string `json:"body"`
}

func (s *webServer) all() []webRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]webRequest(nil), s.requests...)
}

func (s *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	s.mu.Lock()
	s.requests = append(s.requests, webRequest{r.Method, r.URL.String(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/v1/audio/transcriptions":
		_, _ = io.WriteString(w, `{"text":"good morning"}`)
	case "/weather":
		_, _ = io.WriteString(w, `{"temperature":21.5,"condition":"sun over `+r.URL.Query().Get("q")+`"}`)
	case "/echo":
		_, _ = io.WriteString(w, `{"authorization":"`+r.Header.Get("Authorization")+`"}`)
	case "/text":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "no JSON")
	case "/image":
		w.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(w, "\x89PNG")
	case "/to": // wherever the client wants
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	case "/zeros", "/bomb": // 10 GB
		var out io.Writer = w
		if r.URL.Path == "/bomb" {
			w.Header().Set("Content-Encoding", "gzip")
			out = gzip.NewWriter(w)
		}
		block := make([]byte, 1<<20)
		for range 10 << 10 {
			if _, err := out.Write(block); err != nil {
				return
			}
		}
	case "/drip":
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond): // the pace of this server
			}
		}
	}
}

// expandFiles puts the addresses of the servers into files, where their variables stand
// between dollar signs: expand <file>…
func expandFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: expand <file>…")
	}
	for _, name := range args {
		text := ts.ReadFile(name)
		for _, variable := range []string{"MAIL", "MAIL_CA", "WEB", "WEB_CA", "POSTGRES", "POSTGRES_ADMIN"} {
			text = strings.ReplaceAll(text, "$"+variable+"$", ts.Getenv(variable))
		}
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// refused makes the calls of a file and checks how each ends: refused <caller> <callee>
// <file>. A line is the capability, its payload, and a regular expression for the result,
// with bars in between.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: refused <caller> <callee> <file>")
	}
	for line := range strings.Lines(ts.ReadFile(args[2])) {
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) != 3 {
			ts.Fatalf("%q is not capability | payload | result", line)
		}
		err := ts.Exec("agentd", "request", "--as", args[0], args[1], parts[0], parts[1], "-o", "jsonl")
		if out := ts.ReadFile("stdout"); err == nil || !regexp.MustCompile(parts[2]).MatchString(out) {
			ts.Fatalf("%s %s: no %q in %s%s", parts[0], parts[1], parts[2], out, ts.ReadFile("stderr"))
		}
	}
}
