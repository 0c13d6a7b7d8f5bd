package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/agentd/agentd/skill/internal/wire"
)

// maxLine bounds a line of the worker.
const maxLine = 8 << 20

// A message is a line of either end.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *wire.Error     `json:"error"`
}

// A session is one process of the worker.
type session struct {
	cfg    *Config
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File // of which read alone reads; it takes deadlines
	lines  chan message
	broken error      // why there are no more lines; set before lines is closed
	exited chan error // receives the end of the process
	lastID int

	concurrency int
	serves      map[string]bool // nil for all
}

// open starts the worker.
func open(ctx context.Context, cfg *Config) (*session, error) {
	s := &session{cfg: cfg, lines: make(chan message, 1024), exited: make(chan error, 1)}
	s.cmd = exec.CommandContext(ctx, cfg.Command[0], cfg.Command[1:]...)
	s.cmd.Dir, s.cmd.Stderr = cfg.Dir, cfg.Stderr
	s.cmd.Env = append(os.Environ(), wire.EnvWorker+"="+strconv.Itoa(wire.Version))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Cancel = func() error { return syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }
	s.cmd.WaitDelay = cfg.Grace
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stdout = write
	if err := s.cmd.Start(); err != nil {
		_, _ = out.Close(), write.Close() // nothing has been written
		return nil, err
	}
	_ = write.Close() // the worker has its own
	s.out = out
	go s.read()
	go func() { s.exited <- s.cmd.Wait() }()
	return s, nil
}

// read takes the lines of the worker, until the first that is no message.
func (s *session) read() {
	defer s.out.Close() //nolint:errcheck // it was only read
	defer close(s.lines)
	for in := bufio.NewReaderSize(s.out, 64<<10); ; {
		var line []byte
		for {
			part, err := in.ReadSlice('\n')
			line = append(line, part...)
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxLine {
				s.broken = errors.New("it has closed its standard output")
				if len(line) > 0 {
					s.broken = fmt.Errorf("its last line has no end, or has more than %d bytes: %.80q", maxLine, line)
				}
				return
			}
		}
		var m message
		_, err := wire.Decode(line)
		if err == nil {
			err = json.Unmarshal(line, &m)
		}
		if err != nil {
			s.broken = fmt.Errorf("it has written a line that is no message: %w: %.200q", err, bytes.TrimSpace(line))
			return
		}
		s.lines <- m
	}
}

// close ends the worker at once.
func (s *session) close() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	_ = s.in.Close()
	_ = s.out.SetReadDeadline(time.Now()) // something may keep the output open; it may be closed
	for range s.lines {                   // so that read ends, whatever has been written
	}
}

// send writes one message.
func (s *session) send(m map[string]any) error {
	m["jsonrpc"] = "2.0"
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() { // ends with the process at the latest
		_, err := s.in.Write(line.Bytes())
		written <- err
	}()
	select {
	case err := <-written:
		if err != nil {
			return fmt.Errorf("it does not take a message: %w", err)
		}
		return nil
	case <-time.After(s.cfg.Timeout):
		return fmt.Errorf("it has not read its standard input for %s", s.cfg.Timeout)
	}
}

// request sends a request, and returns its id.
func (s *session) request(method string, params any) (id string, err error) {
	s.lastID++
	id = strconv.Itoa(s.lastID)
	return id, s.send(map[string]any{"id": s.lastID, "method": method, "params": params})
}

func (s *session) notify(method string, params any) error {
	return s.send(map[string]any{"method": method, "params": params})
}

// next returns the next message.
func (s *session) next(within time.Duration) (message, error) {
	select {
	case m, ok := <-s.lines:
		if !ok {
			return m, s.broken
		}
		return m, nil
	case <-time.After(within):
		return message{}, fmt.Errorf("it has said nothing for %s", within)
	}
}

// response waits for the response to a request; the worker must say nothing else.
func (s *session) response(id string, within time.Duration) (message, error) {
	m, err := s.next(within)
	switch {
	case err != nil:
		return m, fmt.Errorf("no response to request %s: %w", id, err)
	case m.Method != "":
		return m, fmt.Errorf("it has sent %s, and the response to request %s was due", m.Method, id)
	case string(m.ID) != id:
		return m, fmt.Errorf("it has answered request %s, and the response to request %s was due", m.ID, id)
	}
	return m, nil
}

// ask sends a request and waits for its response.
func (s *session) ask(method string, params any) (message, error) {
	id, err := s.request(method, params)
	if err != nil {
		return message{}, err
	}
	return s.response(id, s.cfg.Timeout)
}

// alive makes sure that the worker is there, and says nothing unasked.
func (s *session) alive() error {
	m, err := s.ask(wire.Ping, struct{}{})
	if err != nil {
		return err
	}
	if m.Error != nil {
		return fmt.Errorf("it answers a ping with the error %d: %s", m.Error.Code, m.Error.Message)
	}
	return nil
}

// hasEnded reports whether the process ends, with whatever status.
func (s *session) hasEnded() bool {
	select {
	case err := <-s.exited:
		s.exited <- err
		return true
	case <-time.After(s.cfg.Grace):
		return false
	}
}

// ends waits for the process to end with status 0.
func (s *session) ends() error {
	select {
	case err := <-s.exited:
		if err != nil {
			return fmt.Errorf("it has ended with %w", err)
		}
		return nil
	case <-time.After(s.cfg.Grace):
		return fmt.Errorf("it has not ended within %s", s.cfg.Grace)
	}
}
