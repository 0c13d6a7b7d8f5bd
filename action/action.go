package action

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agentd/agentd/capability"
)

// An Action is something that an agent can do. Its JSON has the names of these fields in
// camel case.
type Action struct {
	// ID is what callers name. It is URL-safe and at most [capability.MaxNameBytes] long.
	ID string `json:"id"`
	// Name and Description are for people and models.
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters is the JSON Schema, in the subset of package schema, of what the action
	// takes. Its root is of type object.
	Parameters json.RawMessage `json:"parameters"`
	// Returns is the JSON Schema of what the action returns. Nil means any JSON.
	Returns json.RawMessage `json:"returns,omitempty"`
	// Permissions are what a user must have, such as weather:read. They may be none, but
	// not nil: an action that needs no permission says so.
	Permissions []string `json:"permissions"`
	// RateLimit bounds the executions of each user. Nil means [DefaultRateLimit].
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// TimeoutMS bounds one execution. 0 means [DefaultTimeout].
	TimeoutMS int64 `json:"timeoutMs,omitempty"`
	// Idempotent says that executing twice has the effect of executing once. Only such
	// actions are retried.
	Idempotent bool `json:"idempotent,omitempty"`
	// Cost estimates what one execution costs, by the owner's units.
	Cost map[string]float64 `json:"cost,omitempty"`
}

// DefaultTimeout bounds an execution of an action that names no time.
const DefaultTimeout = 30 * time.Second

// DefaultRateLimit is that of an action that names none: no action may be executed
// without a limit.
func DefaultRateLimit() RateLimit {
	l := capability.DefaultActionLimit()
	return RateLimit{Requests: l.Requests, Window: l.Period}
}

// A RateLimit allows so many requests of each user in a window of time. What was not
// used comes back evenly over the window.
type RateLimit struct {
	// Requests is at least 1.
	Requests int
	// Window is positive.
	Window time.Duration
	// Burst is how many may come at once. 0 means Requests.
	Burst int
}

// Bucket returns the limit in the form of package policy, which enforces it.
func (l RateLimit) Bucket() *capability.RateLimit {
	return &capability.RateLimit{Requests: l.Requests, Period: l.Window, Burst: cmp.Or(l.Burst, l.Requests)}
}

type rateLimitJSON struct {
	Requests int    `json:"requests"`
	Window   string `json:"window"`
	Burst    int    `json:"burst,omitempty"`
}

// MarshalJSON writes {"requests":100,"window":"1h0m0s"}.
func (l RateLimit) MarshalJSON() ([]byte, error) {
	return json.Marshal(rateLimitJSON{l.Requests, l.Window.String(), l.Burst})
}

// UnmarshalJSON reads a window such as 1h, 10s or 500ms.
func (l *RateLimit) UnmarshalJSON(data []byte) error {
	var read rateLimitJSON
	if err := strict(data, &read); err != nil {
		return err
	}
	window, err := time.ParseDuration(read.Window)
	if err != nil {
		return fmt.Errorf("the window %q is no duration such as 1h, 10s or 500ms", read.Window)
	}
	*l = RateLimit{Requests: read.Requests, Window: window, Burst: read.Burst}
	return l.check()
}

func (l *RateLimit) check() error {
	if l.Requests < 1 || l.Window <= 0 || l.Burst < 0 {
		return errors.New("a rate limit allows at least one request in a window of some length")
	}
	return nil
}

// Parse reads an action from its JSON. A member that no action has is an error.
func Parse(data []byte) (Action, error) {
	var a Action
	if err := strict(data, &a); err != nil {
		return Action{}, fmt.Errorf("action: %w", err)
	}
	return a, nil
}

// strict decodes one JSON value that has no unknown members and nothing behind it.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// timeout is how long one execution may take.
func (a *Action) timeout() time.Duration {
	if a.TimeoutMS <= 0 {
		return DefaultTimeout
	}
	const most = 24 * time.Hour
	return time.Duration(min(a.TimeoutMS, most.Milliseconds())) * time.Millisecond
}
