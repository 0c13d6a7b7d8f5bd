package byhand_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/byhand"
)

const request = `{"version":1,"kind":"request","messageId":"m","correlationId":"c","causedBy":"b","from":"agent://a","to":"agent://b",` +
	`"capability":"review","replyTo":"nats://_INBOX.x","deadline":1790000000000,"tenantId":"t","headers":{"x-agentd-hops":"1"},` +
	`"payload":{"a":[1,-0.5e+3,true,false,null,"x\n"],"b":{}},"auth":{"kind":"internal"}}`

// Both codecs make the same of a message.
func TestSame(t *testing.T) {
	want, err := envelope.Decode([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	got, err := byhand.Decode([]byte(request))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	a, aerr := want.EncodeChecked()
	b, berr := byhand.Encode(want)
	if aerr != nil || berr != nil || string(a) != string(b) {
		t.Errorf("got %s, %v, want %s, %v", b, berr, a, aerr)
	}
}

// Both refuse the same messages.
func TestStrict(t *testing.T) {
	for _, change := range [][2]string{
		{`{"version":1,`, `{`}, {`"version":1`, `"version":2`}, {`"version":1`, `"version":1.5`}, {`"kind":"request"`, `"kind":"query"`},
		{`"messageId":"m"`, `"messageId":""`}, {`"messageId":"m"`, "\"messageId\":\"\xff\""}, {`"messageId":"m",`, ``},
		{`"messageId":"m"`, `"messageId":"m","messageId":"m"`}, {`"messageId":"m"`, `"messageId":7`},
		{`agent://a`, `agent://A`}, {`agent://a`, `agent://a..b`}, {`agent://b`, `b`}, {`nats://_INBOX.x`, `http://x`}, {`nats://_INBOX.x`, `nats://a b`},
		{`1790000000000`, `0`}, {`1790000000000`, `-1`}, {`1790000000000`, `1.5`}, {`1790000000000`, `99007199254740993`},
		{`"x-agentd-hops":"1"`, `"x-agentd-hops":"1","x-agentd-hops":"1"`}, {`"x-agentd-hops":"1"`, `"x-agentd-hops":1`},
		{`"b":{}`, `"a":{}`}, {`-0.5e+3`, `-.5`}, {`-0.5e+3`, `01`}, {`-0.5e+3`, `1.`}, {`-0.5e+3`, `1e`}, {`true`, `tru`}, {`null`, `nul`},
		{`"x\n"`, `"x\q"`}, {`"x\n"`, "\"\n\""}, {`"x\n"`, "\"\xff\""}, {`"x\n"`, strings.Repeat("[", 600) + strings.Repeat("]", 600)},
		{`"tenantId"`, `"tenant"`}, {`internal"}}`, `internal"}} x`}, {`internal"}}`, `internal"}`}, {`{"kind":"internal"}`, `{"kind":"none"}`},
	} {
		text := strings.Replace(request, change[0], change[1], 1)
		if text == request {
			t.Fatalf("%q changes nothing", change)
		}
		_, want := envelope.Decode([]byte(text))
		if _, err := byhand.Decode([]byte(text)); err == nil || want == nil {
			t.Errorf("%q for %q: got %v, and package envelope %v", change[1], change[0], err, want)
		}
	}
}
