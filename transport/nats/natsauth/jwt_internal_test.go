package natsauth

import (
	"slices"
	"testing"

	"github.com/nats-io/jwt/v2"
)

// What is left out is what lies within another export of the same kind, and nothing else.
func TestOutermost(t *testing.T) {
	t.Parallel()
	var all []export
	for _, subject := range []string{"a", "a.b", "a.b.>", "a.b.c", "a.b.c.>", "a.*", "b.*.c", "b.x.c", "b.x.d", "c.>", "c.x", "c", "cc.x", "*.y", "d.y", "d.*.>", "d.e.f"} {
		all = append(all, export{subject: subject}, export{subject: subject, stream: true})
	}
	all = append(all, export{subject: "e.>"}, export{subject: "e.f", stream: true})
	var want []string
	for _, e := range all {
		if !slices.ContainsFunc(all, func(other export) bool {
			return other.stream == e.stream && other.subject != e.subject && jwt.Subject(e.subject).IsContainedIn(jwt.Subject(other.subject))
		}) {
			want = append(want, e.subject)
		}
	}
	var got []string
	for _, e := range outermost(all) {
		got = append(got, e.subject)
	}
	if !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	if len(got) == len(all) {
		t.Error("nothing lies within another")
	}
}
