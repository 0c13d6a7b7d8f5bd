package capability

import (
	"fmt"

	"github.com/agentd/agentd/internal/strictyaml"
)

// A TransportKind names a messaging system.
type TransportKind string

// The kinds that files may name. Not all of them are implemented: a file may
// list those of other systems, and only using one is an error.
const (
	Memory TransportKind = "memory"
	NATS   TransportKind = "nats"
	Kafka  TransportKind = "kafka"
	SQS    TransportKind = "sqs"
	AMQP   TransportKind = "amqp"
	MQTT   TransportKind = "mqtt"
)

// A TransportSpec is one way to reach an agent. String fields are as written;
// a reference such as ${env:NAME} is not resolved here.
type TransportSpec struct {
	// Kind is one of the constants above.
	Kind TransportKind
	// Requests is the topic, subject or queue that the agent listens on.
	Requests string
	// Responses is where its replies go; "" if the file does not say.
	Responses string
	// Servers are Kafka's brokers or the servers of a NATS cluster.
	Servers []string
	// URL is the broker's for AMQP and MQTT.
	URL string
	// Region is for SQS.
	Region string
	// TLS asks Kafka for an encrypted connection.
	TLS bool
	// SASL authenticates to Kafka; nil is none.
	SASL *SASL
	// Position is where the transport stands in its file.
	Position Position
}

// SASL holds credentials for Kafka.
type SASL struct {
	// Mechanism is plain, scram-sha-256 or scram-sha-512.
	Mechanism string
	Username  string
	// PasswordRef names the place of the password. The password itself is
	// never in a file.
	PasswordRef string
}

// Address returns the request topic as envelopes name it: <kind>://<topic>.
func (t TransportSpec) Address() string { return string(t.Kind) + "://" + t.Requests }

// A Side is whose file a transport is read from.
type Side int

const (
	// ServerSide is capabilities.yaml, where replies may have a topic of
	// their own.
	ServerSide Side = iota
	// PeerSide is rpc-peers.yaml, which names topics for requests only.
	PeerSide
)

// DecodeTransports reads the transports of a file. It is exported for package
// fleet, whose peers files use the same form.
func DecodeTransports(v strictyaml.Value, side Side) []TransportSpec {
	var specs []TransportSpec
	for _, item := range v.AtLeastOne("transport").List() {
		specs = append(specs, decodeTransport(item, side))
	}
	return specs
}

// decodeTransport reads one transport. Its kind decides which keys it may
// have; a key of another kind is a fault, because it would have no effect.
func decodeTransport(v strictyaml.Value, side Side) TransportSpec {
	o := v.Object()
	t := TransportSpec{Position: v.Position()}
	t.Kind = TransportKind(o.Need("kind").Enum(
		string(Memory), string(NATS), string(Kafka), string(SQS), string(AMQP), string(MQTT)))
	destinations := "topics"
	switch t.Kind {
	case NATS:
		destinations = "subjects"
		t.Servers = o.Need("servers").AtLeastOne("server").Texts()
	case Kafka:
		t.Servers = o.Need("brokers").AtLeastOne("broker").Texts()
		t.TLS = o.Get("ssl").Bool()
		t.SASL = decodeSASL(o.Get("sasl"))
	case SQS:
		destinations = "queues"
		t.Region = o.Need("region").Text()
	case AMQP:
		destinations = "queues"
		t.URL = o.Need("url").Text()
	case MQTT:
		t.URL = o.Need("url").Text()
	case Memory:
	default:
		return t // the fault is recorded; which keys belong here is unknown
	}
	if d := o.Need(destinations); d.Present() {
		t.Requests, t.Responses = decodeDestinations(d, destinations, side)
	}
	o.Done()
	return t
}

// decodeDestinations reads the topics, subjects or queues of a transport.
func decodeDestinations(v strictyaml.Value, key string, side Side) (requests, responses string) {
	o := v.Object()
	requests = o.Need("requests").Text()
	if r := o.Get("responses"); r.Present() {
		if side == PeerSide {
			r.Fault(fmt.Sprintf("a peer's %s name no responses", key), "remove the key: replies come to the caller's own inbox")
		}
		responses = r.Text()
	}
	o.Done()
	return requests, responses
}

// decodeSASL reads credentials for Kafka; nil if there are none.
func decodeSASL(v strictyaml.Value) *SASL {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	defer o.Done()
	return &SASL{
		Mechanism:   o.Need("mechanism").Enum("plain", "scram-sha-256", "scram-sha-512"),
		Username:    o.Need("username").Text(),
		PasswordRef: o.Need("passwordRef").Text(),
	}
}
