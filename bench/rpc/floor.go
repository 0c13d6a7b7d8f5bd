package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/agentd/agentd/schema"
)

// The floor is what a validated call over this broker costs when everything but the
// envelope, a goroutine for each request and four validations is left out: no
// permissions, limits, breaker, gate, records, retries, cancellation.

// errRefused says that an end of the floor has refused a message.
var errRefused = errors.New("the message is refused")

// A floorCallee answers requests.
type floorCallee struct {
	schema  *schema.Schema
	publish func(topic string, data []byte) error
	buffers sync.Pool
}

// serve answers one request with its payload. Whoever gets no answer sees a timeout.
func (f *floorCallee) serve(data []byte) {
	begun := time.Now()
	var in message
	if err := decodeMessage(data, &in); err != nil || in.kind != "request" || string(in.to) != string(calleeAddr) || string(in.capability) != "review" {
		return
	}
	topic, ok := bytes.CutPrefix(in.replyTo, []byte("nats://"))
	if !ok || in.deadline < begun.UnixMilli() || !f.schema.Valid(in.payload) {
		return
	}
	answer := in.payload // the skill
	if !f.schema.Valid(answer) {
		return
	}
	var id [36]byte
	var took [20]byte
	out := message{
		kind: "response", messageID: appendID(id[:0]), correlationID: in.correlationID, causedBy: in.messageID,
		from: in.to, to: in.from, capability: in.capability, payloadBefore: `{"ok":true,"data":`, payload: answer, payloadAfter: "}",
	}
	out.headers[0] = [2][]byte{traceparentKey, in.headers[0][1]}
	out.headers[1] = [2][]byte{executionKey, strconv.AppendInt(took[:0], time.Since(begun).Microseconds(), 10)}
	out.headerCount = 2
	buffer := f.buffers.Get().(*[]byte)
	*buffer = appendMessage((*buffer)[:0], &out)
	_ = f.publish(string(topic), *buffer)
	f.buffers.Put(buffer)
}

var (
	traceparentKey = []byte("traceparent")
	hopsKey        = []byte("x-agentd-hops")
	executionKey   = []byte("x-agentd-execution-us")
	digestKey      = []byte("x-agentd-schema-digest")
)

// newBuffers pools buffers for encoding.
func newBuffers() sync.Pool {
	return sync.Pool{New: func() any { b := make([]byte, 0, 8192); return &b }}
}

// appendID writes an id in the form of a UUID.
func appendID(dst []byte) []byte {
	var raw [16]byte
	a, b := rand.Uint64(), rand.Uint64()
	for i := range 8 {
		raw[i], raw[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	raw[6], raw[8] = raw[6]&0x0f|0x70, raw[8]&0x3f|0x80
	for i, n := range []int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, raw[[]int{0, 4, 6, 8, 10}[i]:n])
	}
	return dst
}

// A floorClient makes calls.
type floorClient struct {
	schema  *schema.Schema
	publish func(data []byte) error
	closes  func() error
	replyTo []byte
	digest  []byte
	buffers sync.Pool
	slots   sync.Pool

	mu      sync.Mutex
	pending map[[36]byte]*slot // by correlation id; guarded by mu
}

// A slot waits for one reply.
type slot struct {
	reply chan []byte
	timer *time.Timer
}

func newFloorClient(replyTo string, publish func([]byte) error, closes func() error) (*floorClient, error) {
	compiled, err := schema.Compile([]byte(reviewSchema))
	if err != nil {
		return nil, err
	}
	return &floorClient{
		schema: compiled, publish: publish, closes: closes, replyTo: []byte(replyTo), digest: bytes.Repeat([]byte("f"), 64),
		buffers: newBuffers(), pending: map[[36]byte]*slot{},
		slots: sync.Pool{New: func() any { return &slot{reply: make(chan []byte, 1), timer: time.NewTimer(callLimit)} }},
	}, nil
}

func (c *floorClient) call(payload []byte) error {
	if !c.schema.Valid(payload) {
		return errRefused
	}
	var id, correlation [36]byte
	var trace [55]byte
	appendID(correlation[:0])
	s := c.slots.Get().(*slot)
	s.timer.Reset(callLimit)
	c.mu.Lock()
	c.pending[correlation] = s
	c.mu.Unlock()
	out := message{
		kind: "request", messageID: appendID(id[:0]), correlationID: correlation[:], from: []byte(callerAddr), to: []byte(calleeAddr),
		capability: []byte("review"), replyTo: c.replyTo, deadline: time.Now().Add(callLimit).UnixMilli(), payload: payload,
	}
	out.headers[0], out.headers[1] = [2][]byte{traceparentKey, appendTrace(trace[:0])}, [2][]byte{hopsKey, []byte("1")}
	out.headers[2] = [2][]byte{digestKey, c.digest}
	out.headerCount = 3
	buffer := c.buffers.Get().(*[]byte)
	*buffer = appendMessage((*buffer)[:0], &out)
	err := c.publish(*buffer)
	c.buffers.Put(buffer)
	if err != nil {
		return err
	}
	select {
	case answer := <-s.reply:
		s.timer.Stop()
		c.slots.Put(s)
		switch {
		case !c.schema.Valid(answer):
			return errRefused
		case len(answer) != len(payload):
			return errWrongReply
		}
		return nil
	case <-s.timer.C: // the slot may still get a reply: nobody uses it again
		c.mu.Lock()
		delete(c.pending, correlation)
		c.mu.Unlock()
		return errRefused
	}
}

func appendTrace(dst []byte) []byte {
	var raw [24]byte
	for i := range 3 {
		for j, n := 0, rand.Uint64(); j < 8; j++ {
			raw[8*i+j] = byte(n >> (8 * j))
		}
	}
	dst = hex.AppendEncode(append(dst, "00-"...), raw[:16])
	return append(hex.AppendEncode(append(dst, '-'), raw[16:]), "-01"...)
}

// receive completes the call that a reply is for.
func (c *floorClient) receive(data []byte) {
	var in message
	if err := decodeMessage(data, &in); err != nil || in.kind != "response" || len(in.correlationID) != 36 ||
		string(in.from) != string(calleeAddr) || string(in.to) != string(callerAddr) {
		return
	}
	answer, ok := bytes.CutPrefix(in.payload, []byte(`{"ok":true,"data":`))
	answer, closed := bytes.CutSuffix(answer, []byte("}"))
	if !ok || !closed {
		return
	}
	c.mu.Lock()
	s := c.pending[[36]byte(in.correlationID)]
	delete(c.pending, [36]byte(in.correlationID))
	c.mu.Unlock()
	if s != nil {
		s.reply <- answer
	}
}

func (c *floorClient) close() error { return c.closes() }

func newFloorCallee(publish func(string, []byte) error) (*floorCallee, error) {
	compiled, err := schema.Compile([]byte(reviewSchema))
	if err != nil {
		return nil, err
	}
	return &floorCallee{schema: compiled, publish: publish, buffers: newBuffers()}, nil
}

func serveFloor(target string) (*callee, error) {
	return serveOn(target, func(nc *natsgo.Conn) error {
		f, err := newFloorCallee(nc.Publish)
		if err != nil {
			return err
		}
		_, err = nc.QueueSubscribe(subject, "g", func(m *natsgo.Msg) { go f.serve(m.Data) })
		return err
	})
}

func dialFloor(address string) (client, error) {
	nc, err := natsgo.Connect(address)
	if err != nil {
		return nil, err
	}
	inbox := natsgo.NewInbox()
	c, err := newFloorClient("nats://"+inbox, func(data []byte) error { return nc.PublishRequest(subject, inbox, data) },
		func() error { nc.Close(); return nil })
	if err == nil {
		_, err = nc.Subscribe(inbox, func(m *natsgo.Msg) { c.receive(m.Data) })
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}
