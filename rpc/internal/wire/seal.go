package wire

import (
	"context"
	"sync"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/transport"
)

// Seal encodes a message with the proof of its sender. Without a signer the sender
// is a bare claim.
func Seal(signer envelope.Signer, e *envelope.Envelope) ([]byte, error) {
	return appendSealed(nil, signer, e)
}

func appendSealed(dst []byte, signer envelope.Signer, e *envelope.Envelope) ([]byte, error) {
	if signer == nil {
		e.Auth = envelope.Auth{Kind: envelope.AuthInternal}
		return e.AppendChecked(dst)
	}
	return e.AppendSigned(dst, signer)
}

// maxSpare bounds the memory of a buffer that waits for another message: one large
// message must not keep its memory for as long as small ones follow.
const maxSpare = 64 << 10

// Buffers lend the memory in which messages are encoded. The zero value is ready to
// use, and safe for concurrent use.
type Buffers struct{ spare sync.Pool }

// A Buffer holds one message from its encoding until a transport has it. It has one
// owner, who calls Release last.
type Buffer struct {
	from  *Buffers
	given bool // the message's memory is its receivers'
	data  []byte
}

// For lends a buffer for one message to t. Only where t copies what it publishes is it
// used again: elsewhere the receivers of the message read the same bytes.
func (b *Buffers) For(t transport.Transport) *Buffer {
	buffer, ok := b.spare.Get().(*Buffer)
	if !ok {
		buffer = &Buffer{from: b}
	}
	c, ok := t.(transport.Copier)
	if buffer.given = !ok || !c.CopiesData(); buffer.given {
		buffer.data = nil
	}
	return buffer
}

// Seal is [Seal] into the buffer. The message is valid until Release, or until the buffer
// seals another one.
func (b *Buffer) Seal(signer envelope.Signer, e *envelope.Envelope) ([]byte, error) {
	data, err := appendSealed(b.data[:0], signer, e)
	if err == nil {
		b.data = data
	}
	return data, err
}

// Release gives the buffer back. Nobody may use it afterwards, nor the message in it.
func (b *Buffer) Release() {
	if b.given || cap(b.data) > maxSpare {
		b.data = nil
	}
	b.from.spare.Put(b)
}

// Publish seals a message and hands it to t.
func (b *Buffers) Publish(ctx context.Context, t transport.Transport, topic string, signer envelope.Signer, e *envelope.Envelope) error {
	buffer := b.For(t)
	defer buffer.Release()
	data, err := buffer.Seal(signer, e)
	if err != nil {
		return err
	}
	return t.Publish(ctx, transport.Message{Topic: topic, Data: data})
}
