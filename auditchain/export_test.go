package auditchain

import (
	"context"

	"github.com/agentd/agentd/auditchain/internal/chain"
)

// OpenWith is Open with another driver than SQLite's.
var OpenWith = open

// Hold occupies the writer of a log until release is called.
func (l *Log) Hold() (release func()) {
	held, done := make(chan struct{}), make(chan struct{})
	go func() {
		_ = l.do(context.Background(), func(*chain.Writer) error {
			close(held)
			<-done
			return nil
		})
	}()
	<-held
	return func() { close(done) }
}
