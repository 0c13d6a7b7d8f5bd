package id

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// BenchmarkSource compares a batch's ids with those of the library.
func BenchmarkSource(b *testing.B) {
	b.Run("Two", func(b *testing.B) {
		var s Source
		b.ReportAllocs()
		for b.Loop() {
			_, _ = s.TwoAt(time.Now())
		}
	})
	b.Run("TwoByLibrary", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for range 2 {
				id, err := uuid.NewV7()
				if err != nil {
					b.Fatal(err)
				}
				_ = id.String()
			}
		}
	})
}
