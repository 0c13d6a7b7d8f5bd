package durable

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoJetStream says that the server has no JetStream, or none for this agent.
var ErrNoJetStream = errors.New("the NATS server has no JetStream for this agent: start it with `-js` (agentd broker does), " +
	"or remove `delivery: durable` from the capabilities")

// A SettingError says that a stream exists and is not as it must be. What others
// may rely on is not changed silently.
type SettingError struct {
	// Stream is its name, Setting what differs.
	Stream, Setting string
	// Have is what the stream says, Want what it must say.
	Have, Want any
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("the stream %s has %s %v, and not %v: change it with `nats stream edit %s`, or remove the stream if nothing in it is needed",
		e.Stream, e.Setting, e.Have, e.Want, e.Stream)
}

// hasCode reports an error of the JetStream API with that code.
func hasCode(err error, code jetstream.ErrorCode) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == code
}

// noJetStream reports that the API does not answer, or says that it is off.
func noJetStream(err error) bool {
	return errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) ||
		errors.Is(err, nats.ErrNoResponders)
}
