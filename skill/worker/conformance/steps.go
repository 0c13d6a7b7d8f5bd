package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/agentd/agentd/skill/internal/wire"
)

// sequences are the checks, in the order in which one process after the other goes through
// them. The first of each sequence is what the others begin with.
func sequences() [][]step {
	return [][]step{
		{
			{"answers initialize", initialize},
			{"answers pings", (*session).alive},
			{"passes over what it does not know", tolerate},
			{"refuses methods that it does not know", refuseMethod},
			{"echoes any JSON (check-echo)", echo},
			{"knows its call (check-context)", know},
			{"reports failures to the caller (check-fail)", fail},
			{"keeps other failures from the caller (check-bug)", hide},
			{"serves as many calls at once as it says", concurrent},
			{"ends cancelled calls (check-wait)", cancel},
			{"passes over the cancelling of what has ended", cancelNothing},
			{"reports progress (check-progress)", progress},
			{"makes nested calls (check-nested)", nested},
			{"survives nested calls that are refused (check-nested)", nestedRefused},
			{"answers the calls given", calls},
			{"ends after shutdown", shutdown},
		},
		{{"refuses versions that it does not speak", version}},
		{{"ends with its input", endOfFile}},
		{{"ends on SIGTERM", terminate}},
	}
}

// offered are the capabilities of the check.
func offered() (all []wire.Capability) {
	for _, name := range []string{"check-echo", "check-context", "check-fail", "check-bug", "check-wait", "check-progress", "check-nested"} {
		all = append(all, wire.Capability{Name: name, Progress: name == "check-progress"})
	}
	return all
}

// begin sends initialize with some versions, and returns what the worker says.
func begin(s *session, versions ...int) (message, error) {
	id, err := s.request(wire.Initialize, wire.InitializeParams{
		ProtocolVersions: versions, Agent: "agent://check", Skill: "check", FleetRoot: "/", URL: "http://127.0.0.1:9",
		Capabilities: append(offered(), s.cfg.Capabilities...),
		Limits: wire.Limits{
			Concurrency: 8, MaxMessageBytes: maxLine, MaxPayloadBytes: 4 << 20, MaxProgressBytes: 64 << 10, MaxRequests: 64,
			StartTimeoutMs: s.cfg.StartTimeout.Milliseconds(), GraceMs: s.cfg.Grace.Milliseconds(), PingTimeoutMs: s.cfg.Timeout.Milliseconds(),
		},
	})
	if err != nil {
		return message{}, err
	}
	return s.response(id, s.cfg.StartTimeout)
}

func initialize(s *session) error {
	m, err := begin(s, wire.Version, 1_000_000)
	if err != nil {
		return err
	}
	if m.Error != nil {
		return fmt.Errorf("it refuses with the error %d: %s", m.Error.Code, m.Error.Message)
	}
	var result struct {
		ProtocolVersion int       `json:"protocolVersion"`
		Capabilities    *[]string `json:"capabilities"`
		Concurrency     *int      `json:"concurrency"`
	}
	if err := json.Unmarshal(m.Result, &result); err != nil {
		return fmt.Errorf("its result is not {protocolVersion, capabilities?, concurrency?}: %w", err)
	}
	if result.ProtocolVersion != wire.Version {
		return fmt.Errorf("its protocolVersion is %d, and it was offered %d and one of the far future", result.ProtocolVersion, wire.Version)
	}
	s.concurrency = 1
	if result.Concurrency != nil {
		if s.concurrency = min(*result.Concurrency, 8); s.concurrency < 1 {
			return fmt.Errorf("its concurrency is %d", *result.Concurrency)
		}
	}
	if result.Capabilities != nil {
		s.serves = map[string]bool{}
		for _, name := range *result.Capabilities {
			s.serves[name] = true
		}
		for _, c := range s.cfg.Capabilities {
			if !s.serves[c.Name] {
				return fmt.Errorf("it does not serve %s", c.Name)
			}
		}
	}
	return nil
}

// tolerate sends what a later version of the protocol may have.
func tolerate(s *session) error {
	if err := s.notify("of-the-future", map[string]any{"x": 1}); err != nil {
		return err
	}
	if err := s.send(map[string]any{"method": "of-the-future-without-parameters"}); err != nil {
		return err
	}
	s.lastID++
	if err := s.send(map[string]any{"id": s.lastID, "method": wire.Ping, "params": map[string]any{"more": 1}, "more": []any{nil}}); err != nil {
		return err
	}
	_, err := s.response(fmt.Sprint(s.lastID), s.cfg.Timeout)
	return err
}

func refuseMethod(s *session) error {
	m, err := s.ask("of-the-future", struct{}{})
	if err != nil {
		return err
	}
	if m.Error == nil || m.Error.Code != wire.MethodNotFound {
		return fmt.Errorf("the response must be the error %d", wire.MethodNotFound)
	}
	return s.alive()
}

// calls makes the calls that the author has given.
func calls(s *session) error {
	if len(s.cfg.Calls) == 0 {
		return skip("none were given")
	}
	for _, c := range s.cfg.Calls {
		answer, err := s.answer(c.Capability, c.Payload)
		if err == nil && c.Judge != nil {
			err = c.Judge(answer)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Capability, err)
		}
	}
	return nil
}

func shutdown(s *session) error {
	if err := s.notify(wire.Shutdown, struct{}{}); err != nil {
		return err
	}
	_ = s.in.Close() // it may have ended
	return s.ends()
}

func version(s *session) error {
	m, err := begin(s, 1_000_000)
	if err != nil {
		if s.hasEnded() { // which says so as well
			return nil
		}
		return err
	}
	if m.Error == nil {
		return errors.New("it was offered version 1000000 alone, and must answer with an error")
	}
	return nil
}

func endOfFile(s *session) error {
	if err := initialize(s); err != nil {
		return err
	}
	_ = s.in.Close() // nothing is buffered
	return s.ends()
}

func terminate(s *session) error {
	if err := initialize(s); err != nil {
		return err
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-s.exited:
		_ = err // with whatever status
		return nil
	case <-time.After(s.cfg.Grace):
		return fmt.Errorf("it has not ended within %s of SIGTERM", s.cfg.Grace)
	}
}
