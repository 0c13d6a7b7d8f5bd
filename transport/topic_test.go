package transport_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/transport"
)

func TestCheckTopic(t *testing.T) {
	for _, good := range []string{
		"a", "agents.a.requests", "a-b_c", "A.B", "$SYS.x", "_INBOX.1.2", "é.ü", "a/b", "a:b", "a=b?", "!", "~", strings.Repeat("x.", 1000) + "x",
	} {
		if err := transport.CheckTopic("publish", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", ".", "..", ".a", "a.", "a..b", "a...b", " ", "a b", " a", "a ", "a\tb", "a\nb", "a\r", "a\x00b", "a\x1f", "a\x7f", "*", "a.*", "a*b", ">", "a.>", "a>b",
	} {
		err := transport.CheckTopic("subscribe", bad)
		typed, ok := errors.AsType[*transport.Error](err)
		if !ok || typed.Code != transport.BadTopic || typed.Op != "subscribe" || typed.Cause != nil {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Any text is a topic exactly when it consists of parts between dots, each of them
// without what brokers and logs cannot take.
func TestCheckTopicAgreesWithItsDefinition(t *testing.T) {
	topic := regexp.MustCompile(`^[^\x00- \x7f*>.]+(\.[^\x00- \x7f*>.]+)*$`)
	text := rapid.OneOf(rapid.StringOfN(rapid.SampledFrom([]rune("ab..*> \n\x7f/é")), 0, 8, -1),
		rapid.StringOfN(rapid.SampledFrom([]rune("abcdefgh.")), 0, 40, -1), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "topic")
		if err := transport.CheckTopic("publish", s); (err == nil) != topic.MatchString(s) {
			t.Fatalf("%q: %v", s, err)
		}
	})
}

// A character is refused wherever it stands, and only next to another dot is a dot.
func TestCheckTopicAtEveryPlace(t *testing.T) {
	const base = "agents.callee-12.requests"
	for i := range base {
		for c := range 256 {
			b := []byte(base)
			b[i] = byte(c)
			bad := c <= ' ' || c == 0x7f || c == '*' || c == '>' ||
				c == '.' && (i == 0 || i == len(base)-1 || base[i-1] == '.' || base[i+1] == '.')
			if err := transport.CheckTopic("publish", string(b)); (err != nil) != bad {
				t.Errorf("%q: %v", b, err)
			}
		}
	}
}

func BenchmarkCheckTopic(b *testing.B) {
	for b.Loop() {
		if err := transport.CheckTopic("publish", "_INBOX.caller.Jn8aQmTf2LwYx0RkVbC5Dp.019ab1c2-7d1f-7b66-8d1f-4e2c3b5d6f70"); err != nil {
			b.Fatal(err)
		}
	}
}

// A topic that is none may hold what breaks a line of a log: the error quotes it.
func TestBadTopicsAreQuoted(t *testing.T) {
	for topic, want := range map[string]string{
		"a\nb": `publish "a\nb": not a topic`, "a.": `publish "a.": not a topic`, "": `publish: not a topic`,
	} {
		if err := transport.CheckTopic("publish", topic); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", topic, err, want)
		}
	}
}

func TestErrorText(t *testing.T) {
	cause := errors.New("nats: timeout")
	for want, err := range map[string]*transport.Error{
		"publish a.b: message too large for the transport":             {Code: transport.TooLarge, Op: "publish", Topic: "a.b"},
		"inbox: not connected to the broker":                           {Code: transport.Disconnected, Op: "inbox"},
		"drain a: the broker refused: nats: timeout":                   {Code: transport.Failed, Op: "drain", Topic: "a", Cause: cause},
		"subscribe: the broker's permissions forbid it: nats: timeout": {Code: transport.Denied, Op: "subscribe", Cause: cause},
	} {
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
		if errors.Is(err, cause) != (err.Cause != nil) || !errors.Is(err, err.Code) {
			t.Errorf("%v is not what it says", err)
		}
	}
}

// A code is found through any number of wrappings, and never by another's name.
func TestCodesAreFound(t *testing.T) {
	for c := transport.Closed; c <= transport.Failed; c++ {
		err := fmt.Errorf("call: %w", errors.Join(errors.New("first"), &transport.Error{Code: c, Op: "publish"}))
		for other := transport.Closed; other <= transport.Failed; other++ {
			if errors.Is(err, other) != (c == other) {
				t.Errorf("%v is %v: %v", err, other, errors.Is(err, other))
			}
		}
		if code, ok := errors.AsType[transport.Code](err); !ok || code != c {
			t.Errorf("the code of %v is %v", err, code)
		}
	}
}

func TestUnknownCodeHasItsNumber(t *testing.T) {
	for _, c := range []transport.Code{0, transport.Failed + 1, 200} {
		if want := fmt.Sprintf("transport code %d", uint8(c)); c.Error() != want {
			t.Errorf("got %s, want %s", c.Error(), want)
		}
	}
}

func FuzzCheckTopic(f *testing.F) {
	for _, seed := range []string{"agents.a.requests", "a..b", "a.\x7f", "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, topic string) {
		err := transport.CheckTopic("publish", topic)
		if err == nil && (strings.ContainsAny(topic, " \t\r\n*>\x00\x7f") || strings.Contains(topic, "..") || strings.Trim(topic, ".") != topic) {
			t.Errorf("%q is a topic", topic)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\r\n\x00\x7f") {
			t.Errorf("the error holds control characters: %q", err)
		}
	})
}
