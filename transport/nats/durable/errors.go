package durable

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoJetStream means that the server has no JetStream, or none for this agent.
var ErrNoJetStream = errors.New("the NATS server has no JetStream for this agent: start it with `-js` (agentd broker does), " +
	"or remove `delivery: durable` from the capabilities")

// ErrNotProvisioned means that streams, consumers and buckets are an operator's to make,
// and that one is missing.
var ErrNotProvisioned = errors.New("an operator makes it with `agentd fleet provision`")

// provisioned adds to an error about what an operator makes who makes it.
func provisioned(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s cannot be used: %w: %w", what, ErrNotProvisioned, err)
}

// A SettingError means that a stream exists with another setting than the agent needs.
// Others may rely on the setting, so the agent does not change it.
type SettingError struct {
	// Stream is the stream's name, Setting what differs.
	Stream, Setting string
	// Have is the stream's value, Want the one that the agent needs.
	Have, Want any
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("the stream %s has %s %v, and not %v: change it with `nats stream edit %s`, or remove the stream if nothing in it is needed",
		e.Stream, e.Setting, e.Have, e.Want, e.Stream)
}

// hasCode reports whether err is an error of the JetStream API with that code.
func hasCode(err error, code jetstream.ErrorCode) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == code
}

// NoJetStream reports whether err means that JetStream is off: its API does not
// answer, or says so.
func NoJetStream(err error) bool {
	return errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) ||
		errors.Is(err, nats.ErrNoResponders)
}
