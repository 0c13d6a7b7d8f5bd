package dev

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/output"
)

// A logHandler shows records of the agents' log: what skills write to standard error, always,
// and of the others those that are worth it.
type logHandler struct {
	out   *screen
	shown func(slog.Level) bool
	attrs []slog.Attr
}

// skillLine is the message of a record that holds a line of a skill's standard error.
const skillLine = "skill"

// Enabled implements [slog.Handler]: a line of a skill is known by its attributes alone.
func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || h.shown(l)
}

// WithAttrs implements [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.out, h.shown, append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup implements [slog.Handler]. The daemon groups nothing.
func (h *logHandler) WithGroup(string) slog.Handler { return h }

// Handle implements [slog.Handler].
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(h.attrs)
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	named := func(key string) string {
		for _, a := range attrs {
			if a.Key == key {
				return a.Value.Resolve().String()
			}
		}
		return ""
	}
	agent := named("agent")
	if line := named("stderr"); r.Message == skillLine && line != "" {
		of := cmp.Or(named("capability"), named("skill"))
		h.out.show(r.Time, h.out.colors.Dim(output.Printable(agent+"/"+of)+" │ ")+output.Printable(line), struct {
			event
			Agent         string `json:"agent"`
			Of            string `json:"skill"`
			Line          string `json:"line"`
			CorrelationID string `json:"correlationId,omitempty"`
		}{at(r.Time, "stderr"), agent, of, line, named("correlationId")})
		return nil
	}
	if !h.shown(r.Level) {
		return nil
	}
	text := r.Message
	members := map[string]any{}
	for _, a := range attrs {
		if a.Key == "agent" {
			continue
		}
		members[a.Key] = plain(a.Value)
		if !slices.Contains([]string{"peer", "capability", "correlationId", "traceId", "incident"}, a.Key) { // the line of the call has them
			text += fmt.Sprintf("  %s=%v", a.Key, a.Value.Resolve())
		}
	}
	level := strings.ToLower(r.Level.String())
	mark := "!"
	if r.Level >= slog.LevelError {
		mark = h.out.colors.Bad("✗")
	}
	if agent != "" {
		text = agent + ": " + text
	}
	h.out.show(r.Time, mark+" "+output.Printable(text), struct {
		event
		Level   string         `json:"level"`
		Agent   string         `json:"agent,omitempty"`
		Message string         `json:"message"`
		Attrs   map[string]any `json:"attrs,omitempty"`
	}{at(r.Time, "log"), level, agent, r.Message, members})
	return nil
}

// plain is a value that JSON can hold: errors are their text, as are all that has no form.
func plain(v slog.Value) any {
	v = v.Resolve()
	if err, ok := v.Any().(error); ok {
		return err.Error()
	}
	if _, err := json.Marshal(v.Any()); err != nil {
		return v.String()
	}
	return v.Any()
}
