package durable

import (
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// settingFleet is the setting of a stream that names the fleet it belongs to.
const settingFleet = "fleet"

// fleetMetadata is the key under which a stream names the fleet that it belongs to.
const fleetMetadata = "agentd.fleet"

// differences are the settings of a stream that an agent relies on and that are not as
// it needs them.
func differences(have, want jetstream.StreamConfig) (all []*SettingError) {
	ours, theirs := want.Metadata[fleetMetadata], have.Metadata[fleetMetadata]
	for _, setting := range []struct {
		name       string
		have, want any
		same       bool
	}{
		{settingFleet, theirs, ours, theirs == ours || theirs == "" || ours == ""}, // older streams name none
		{"subjects", have.Subjects, want.Subjects, slices.Equal(have.Subjects, want.Subjects)},
		{"retention", have.Retention, want.Retention, have.Retention == want.Retention},
		{"replicas", have.Replicas, want.Replicas, have.Replicas == want.Replicas},
		{"max age", have.MaxAge, want.MaxAge, have.MaxAge == want.MaxAge},
		{"max bytes", have.MaxBytes, want.MaxBytes, max(have.MaxBytes, 0) == max(want.MaxBytes, 0)},
		{"discard policy", have.Discard, want.Discard, have.Discard == want.Discard},
		{"messages per subject", have.MaxMsgsPerSubject, want.MaxMsgsPerSubject, max(have.MaxMsgsPerSubject, 0) == max(want.MaxMsgsPerSubject, 0)},
		{"republish", republish(have), republish(want), republish(have) == republish(want)},
		{"direct access", have.AllowDirect, want.AllowDirect, have.AllowDirect},
		{"sources", sources(have), 0, sources(have) == 0},
	} {
		if !setting.same {
			all = append(all, &SettingError{Stream: want.Name, Setting: setting.name, Have: setting.have, Want: setting.want})
		}
	}
	return all
}

// republish describes where a stream republishes what it has stored.
func republish(c jetstream.StreamConfig) string {
	if c.RePublish == nil {
		return "nothing"
	}
	return c.RePublish.Source + " to " + c.RePublish.Destination
}

// sources counts the streams that a stream copies.
func sources(c jetstream.StreamConfig) int {
	if c.Mirror != nil {
		return len(c.Sources) + 1
	}
	return len(c.Sources)
}
