package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/agentd/agentd/skill/internal/wire"
)

// needs skips a check of a capability that the worker does not serve.
func (s *session) needs(capability string) error {
	if s.serves != nil && !s.serves[capability] {
		return skip("the worker does not serve " + capability)
	}
	return nil
}

// invoke is what a call has.
func invoke(capability string, payload any) map[string]any {
	return map[string]any{
		"capability": capability, "payload": payload, "caller": "agent://caller", "callerProven": true, "correlationId": "c-1", "messageId": "m-1",
		"sessionId": "s-\u2028\"", "tenantId": "acme", "idempotencyKey": "k-1", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"hops": 3, "deadlineMs": int64(4102444800000), "token": "t-1",
	}
}

// answer makes a call that must succeed.
func (s *session) answer(capability string, payload any) (json.RawMessage, error) {
	m, err := s.ask(wire.Invoke, invoke(capability, payload))
	if err != nil {
		return nil, err
	}
	return answerOf(m)
}

func answerOf(m message) (json.RawMessage, error) {
	if m.Error != nil {
		return nil, fmt.Errorf("the call has failed with %d: %s", m.Error.Code, m.Error.Message)
	}
	var result struct{ Answer json.RawMessage }
	if err := json.Unmarshal(m.Result, &result); err != nil || result.Answer == nil {
		return nil, fmt.Errorf(`the result is not {"answer": …} but %.80s`, m.Result)
	}
	return result.Answer, nil
}

// same reports whether two texts are the same JSON value. Numbers are compared as they are
// written.
func same(a, b []byte) bool {
	var x, y any
	for text, into := range map[*[]byte]*any{&a: &x, &b: &y} {
		dec := json.NewDecoder(bytes.NewReader(*text))
		dec.UseNumber()
		if dec.Decode(into) != nil {
			return false
		}
	}
	return reflect.DeepEqual(x, y)
}

func echo(s *session) error {
	if err := s.needs("check-echo"); err != nil {
		return err
	}
	payloads := []string{
		`null`, `true`, `0`, `-7`, `0.5`, `9007199254740993`, `-9223372036854775808`, `123456789012345678901234567890`, `""`, `[]`, `{}`,
		`"line\nfeed, tab\t, quote\", slash\\ and \u0000"`, `"ä, €, 𝄞, \u2028 and \u2029"`, `"\ud834\udd1e"`, `{"":{"a b":[null,[[]]]},"é":1,"constructor":2}`,
		strings.Repeat("[", 64) + strings.Repeat("]", 64), `"` + strings.Repeat("x", 1<<17) + `"`,
	}
	for _, payload := range payloads {
		answer, err := s.answer("check-echo", json.RawMessage(payload))
		if err != nil {
			return fmt.Errorf("%.60s: %w", payload, err)
		}
		if !same(answer, []byte(payload)) {
			return fmt.Errorf("%.60s comes back as %.60s", payload, answer)
		}
	}
	return nil
}

func know(s *session) error {
	if err := s.needs("check-context"); err != nil {
		return err
	}
	answer, err := s.answer("check-context", nil)
	if err != nil {
		return err
	}
	want := invoke("", nil)
	for _, name := range []string{"capability", "payload", "token"} {
		delete(want, name)
	}
	text, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if !same(answer, text) {
		return fmt.Errorf("the answer is %.400s, want %s", answer, text)
	}
	return nil
}

func fail(s *session) error {
	if err := s.needs("check-fail"); err != nil {
		return err
	}
	for _, retryable := range []bool{true, false} {
		m, err := s.ask(wire.Invoke, invoke("check-fail", map[string]any{"message": "no \"room\" left", "retryable": retryable}))
		if err != nil {
			return err
		}
		if m.Error == nil || m.Error.Code != wire.Failed || m.Error.Message != "no \"room\" left" || m.Error.Data.Retryable != retryable {
			return fmt.Errorf("the response is not the error that the payload has, with the code %d and retryable: %t", wire.Failed, retryable)
		}
	}
	return s.alive()
}

func hide(s *session) error {
	if err := s.needs("check-bug"); err != nil {
		return err
	}
	m, err := s.ask(wire.Invoke, invoke("check-bug", "the password is hunter2"))
	if err != nil {
		return err
	}
	if m.Error == nil || m.Error.Code == wire.Failed {
		return fmt.Errorf("the response must be an error other than %d, such as %d", wire.Failed, wire.InternalError)
	}
	return s.alive()
}

// concurrent gives the worker as many calls as it says that it serves, at once.
func concurrent(s *session) error {
	if err := s.needs("check-echo"); err != nil {
		return err
	}
	want := map[string]string{}
	held := []string{}
	for n := range s.concurrency - 1 { // those that wait leave room for one
		if s.needs("check-wait") != nil {
			break
		}
		id, err := s.request(wire.Invoke, invoke("check-wait", n))
		if err != nil {
			return err
		}
		held = append(held, id)
	}
	for n := range s.concurrency - len(held) {
		id, err := s.request(wire.Invoke, invoke("check-echo", n))
		if err != nil {
			return err
		}
		want[id] = fmt.Sprint(n)
	}
	for len(want) > 0 {
		m, err := s.next(s.cfg.Timeout)
		if err != nil {
			return fmt.Errorf("%d of %d calls at once are not answered: %w", len(want), s.concurrency, err)
		}
		expected, ok := want[string(m.ID)]
		if m.Method != "" || !ok {
			return fmt.Errorf("it has answered request %s, which was not expected, or asks for %q", m.ID, m.Method)
		}
		answer, err := answerOf(m)
		if err != nil {
			return fmt.Errorf("request %s: %w", m.ID, err)
		}
		if string(answer) != expected {
			return fmt.Errorf("the answer to request %s is %.80s and not %s", m.ID, answer, expected)
		}
		delete(want, string(m.ID))
	}
	for _, id := range held {
		if err := s.cancelled(id); err != nil {
			return err
		}
	}
	return s.alive()
}

// cancelled cancels a call, which must be answered soon.
func (s *session) cancelled(id string) error {
	if err := s.notify(wire.Cancel, map[string]any{"id": json.RawMessage(id), "reason": "caller"}); err != nil {
		return err
	}
	m, err := s.response(id, s.cfg.Grace)
	if err != nil {
		return fmt.Errorf("a cancelled call: %w", err)
	}
	if (m.Result == nil) == (m.Error == nil) {
		return errors.New("a cancelled call has neither a result nor an error")
	}
	return nil
}

func cancel(s *session) error {
	if err := s.needs("check-wait"); err != nil {
		return err
	}
	id, err := s.request(wire.Invoke, invoke("check-wait", nil))
	if err == nil {
		err = s.cancelled(id)
	}
	if err != nil {
		return err
	}
	return s.alive()
}

func cancelNothing(s *session) error {
	for _, id := range []int{s.lastID, 4_000_000} {
		if err := s.notify(wire.Cancel, map[string]any{"id": id, "reason": "deadline"}); err != nil {
			return err
		}
	}
	return s.alive()
}

func progress(s *session) error {
	if err := s.needs("check-progress"); err != nil {
		return err
	}
	values := []string{`1`, `{"done":0.5,"text":"line\nfeed"}`, `null`}
	params := invoke("check-progress", json.RawMessage("["+strings.Join(values, ",")+"]"))
	params["progress"] = true
	id, err := s.request(wire.Invoke, params)
	if err != nil {
		return err
	}
	for _, want := range values {
		m, err := s.next(s.cfg.Timeout)
		if err != nil {
			return err
		}
		var p struct{ ID, Value json.RawMessage }
		if m.Method != wire.Progress || m.ID != nil || json.Unmarshal(m.Params, &p) != nil || string(p.ID) != id || !same(p.Value, []byte(want)) {
			return fmt.Errorf("the notification progress of request %s with the value %s was due, and %s %s came", id, want, m.Method, m.Params)
		}
	}
	m, err := s.response(id, s.cfg.Timeout)
	if err != nil {
		return err
	}
	answer, err := answerOf(m)
	if err == nil && string(answer) != "3" {
		err = fmt.Errorf("the answer is %.80s and not 3", answer)
	}
	return err
}

// nest makes a call that makes a nested one, and returns the id of that. The worker waits.
func nest(s *session) (id string, asked message, err error) {
	if err := s.needs("check-nested"); err != nil {
		return "", asked, err
	}
	const request = `{"to":"agent://peer","capability":"find","payload":{"n":9007199254740993},"timeoutMs":500,"mode":"sync"}`
	if id, err = s.request(wire.Invoke, invoke("check-nested", json.RawMessage(request))); err != nil {
		return id, asked, err
	}
	if asked, err = s.next(s.cfg.Timeout); err != nil {
		return id, asked, err
	}
	var p wire.RequestAgentParams
	if asked.Method != wire.RequestAgent || asked.ID == nil || json.Unmarshal(asked.Params, &p) != nil {
		return id, asked, fmt.Errorf("the request %s was due, and %s %s came", wire.RequestAgent, asked.Method, asked.Params)
	}
	if string(p.Call) != id || !same(p.Request, []byte(request)) {
		return id, asked, fmt.Errorf("its parameters are %s, and must be {\"call\": %s, \"request\": %s}", asked.Params, id, request)
	}
	return id, asked, nil
}

func nested(s *session) error {
	id, asked, err := nest(s)
	if err != nil {
		return err
	}
	const result = `{"status":"ok","correlationId":"n-1","latencyMs":1.5,"response":{"n":9007199254740993}}`
	if err := s.send(map[string]any{"id": asked.ID, "result": json.RawMessage(result)}); err != nil {
		return err
	}
	m, err := s.response(id, s.cfg.Timeout)
	if err != nil {
		return err
	}
	answer, err := answerOf(m)
	if err != nil {
		return err
	}
	if !same(answer, []byte(result)) {
		return fmt.Errorf("the answer is %s and not the result, %s", answer, result)
	}
	return nil
}

func nestedRefused(s *session) error {
	id, asked, err := nest(s)
	if err != nil {
		return err
	}
	if err := s.send(map[string]any{"id": asked.ID, "error": map[string]any{"code": wire.TooMany, "message": "too many"}}); err != nil {
		return err
	}
	if _, err := s.response(id, s.cfg.Timeout); err != nil {
		return err
	}
	return s.alive()
}
