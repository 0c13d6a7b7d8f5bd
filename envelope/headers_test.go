package envelope_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/alloctest"
)

// The first eight headers are kept in the decoder itself and the rest elsewhere:
// all of them must arrive, in order, whatever their number and spelling.
func TestHeadersOfAnyNumber(t *testing.T) {
	for _, number := range []int{0, 1, 7, 8, 9, 10, 16, 17, 100} {
		for name, key := range map[string]string{"plain": "k%d", "escaped": `a\u006b"%d`} {
			want := envelope.Headers(nil)
			for i := range number {
				want = append(want, envelope.Header{Key: fmt.Sprintf(strings.ReplaceAll(key, `\u006b`, "\n"), i), Value: strings.Repeat("v", i)})
			}
			e := full()
			e.Headers = want
			data, err := e.Encode()
			if err != nil {
				t.Fatal(err)
			}
			got, err := envelope.Decode(data)
			if err != nil || !slices.Equal(got.Headers, want) {
				t.Errorf("%d %s headers: %v, got %v", number, name, err, got)
			}
		}
	}
}

// A repeated key is refused wherever the two stand.
func TestRepeatedHeaders(t *testing.T) {
	const number = 12
	for first := range number {
		for second := first + 1; second < number; second++ {
			var members []string
			for i := range number {
				key := fmt.Sprintf("k%d", i)
				if i == second {
					key = fmt.Sprintf("k%d", first)
				}
				members = append(members, fmt.Sprintf(`%q:""`, key))
			}
			for _, kept := range []int{number, 8} { // more than fit, and as many
				if second >= kept {
					continue
				}
				message := with(`"headers":{` + strings.Join(members[:kept], ",") + `}`)
				if _, err := envelope.Decode([]byte(message)); err == nil || !strings.Contains(err.Error(), "duplicate key") {
					t.Errorf("%d and %d of %d: %v", first, second, kept, err)
				}
			}
		}
	}
	// Spelled differently, they are still the same key.
	if _, err := envelope.Decode([]byte(with(`"headers":{"\u0061":"1","a":"2"}`))); err == nil || !strings.Contains(err.Error(), "duplicate key") {
		t.Errorf("the first with an escape: %v", err)
	}
	if e, err := envelope.Decode([]byte(with(`"headers":{"\u0061":"1","b":"2"}`))); err != nil || e.Headers[0].Key != "a" {
		t.Errorf("an escaped key that is not repeated: %+v, %v", e, err)
	}
}

// Messages with few headers, which is nearly all of them, are decoded in two
// allocations more than those without: the list and the message's text.
func TestFewHeadersAreCheap(t *testing.T) {
	allocations := func(e *envelope.Envelope) float64 {
		data, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return alloctest.Least(100, func() {
			if _, err := envelope.Decode(data); err != nil {
				t.Fatal(err)
			}
		})
	}
	without, with := full(), full()
	for _, e := range []*envelope.Envelope{without, with} {
		e.Headers, e.Auth, e.Payload = nil, envelope.Auth{}, nil // what a pool of scratch space would make vary
	}
	for i := range 8 {
		with.Headers = append(with.Headers, envelope.Header{Key: fmt.Sprint(i), Value: "v"})
	}
	if a, b := allocations(without), allocations(with); b-a > 1 {
		t.Errorf("%v allocations without headers and %v with eight", a, b)
	}
}

// The names are the wire: peers of other versions and languages know them by these.
func TestHeaderNames(t *testing.T) {
	for got, want := range map[string]string{
		envelope.HeaderTraceparent: "traceparent", envelope.HeaderTracestate: "tracestate", envelope.HeaderFleetVersion: "x-fleet-version",
		envelope.HeaderHops: "x-agentd-hops", envelope.HeaderSession: "x-agentd-session", envelope.HeaderIdempotencyKey: "x-agentd-idempotency-key",
		envelope.HeaderSchemaDigest: "x-agentd-schema-digest", envelope.HeaderExecution: "x-agentd-execution-us",
		envelope.HeaderReplayed: "x-agentd-replayed", envelope.HeaderDelivery: "x-agentd-delivery", envelope.HeaderProgress: "x-agentd-progress",
		envelope.HeaderControl: "x-agentd-control", envelope.ControlCancel: "cancel", envelope.DeliveryDurable: "durable",
	} {
		if got != want {
			t.Errorf("%q is %q on the wire", want, got)
		}
	}
}

func TestHeaders(t *testing.T) {
	h := envelope.Headers{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}
	if got := h.With("a", "3"); len(got) != 2 || h[0].Value != "1" {
		t.Errorf("With changed its receiver or kept both: %v from %v", got, h)
	}
	if _, ok := h.With("b", "").Get("b"); ok {
		t.Error("an empty value does not remove the key")
	}
	if v, ok := h.Get("b"); !ok || v != "2" {
		t.Errorf("Get(b) = %q, %v", v, ok)
	}
	if got, want := h.With("a", "3"), (envelope.Headers{{Key: "b", Value: "2"}, {Key: "a", Value: "3"}}); !slices.Equal(got, want) {
		t.Errorf("With(a, 3) = %v, want %v", got, want)
	}
	if v, ok := h.Get("B"); ok {
		t.Errorf("Get(B) = %q: keys are compared byte by byte", v)
	}
	// Two headers made from the same list do not share memory.
	short := h.With("b", "")
	one, two := append(short, envelope.Header{Key: "x"}), append(short, envelope.Header{Key: "y"})
	if one[1].Key != "x" || two[1].Key != "y" {
		t.Errorf("%v and %v share memory", one, two)
	}
}
