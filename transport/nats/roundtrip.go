package nats

import (
	"context"
	"time"
)

// RoundTrip measures how long a ping to the server and its answer take. It fails at once while
// there is no connection.
func (c *Conn) RoundTrip(ctx context.Context) (time.Duration, error) {
	if err := c.Err(); err != nil {
		return 0, err
	}
	start := time.Now()
	err := c.nc.FlushWithContext(ctx) // what waits to be written goes first
	return time.Since(start), c.wrap("ping", "", err)
}

// Reconnects is how often the connection was made again.
func (c *Conn) Reconnects() uint64 { return c.reconnects.Load() }
