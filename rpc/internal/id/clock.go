package id

import (
	"time"

	"github.com/google/uuid"
)

// MadeAt returns when a UUID of version 7 was made, to the millisecond and by the clock of whoever
// made it. ok is false for other ids, which peers may well use.
func MadeAt(text string) (at time.Time, ok bool) {
	id, err := uuid.Parse(text)
	if err != nil || id.Version() != 7 {
		return time.Time{}, false
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms), true
}
