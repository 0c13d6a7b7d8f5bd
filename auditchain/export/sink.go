package export

import (
	"context"
	"fmt"
	"io"
	"os"
)

// A Sink receives encoded batches.
type Sink interface {
	// Write delivers whole lines. It returns when the receiver has them, which
	// paces the export. The context bounds the wait.
	Write(ctx context.Context, lines []byte) error
}

// A Rewinder is a Sink that can undo writes that the cursor does not cover.
type Rewinder interface {
	Sink
	// Position returns the position after everything written so far.
	Position() int64
	// Rewind returns to a position. It is called before the first Write.
	Rewind(position int64) error
}

// A WriterSink writes to a stream, such as standard output.
type WriterSink struct{ Writer io.Writer }

// Write implements [Sink].
func (s WriterSink) Write(_ context.Context, lines []byte) error {
	if _, err := s.Writer.Write(lines); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// A FileSink appends to a file. It is a [Rewinder]: text that a crash left after
// the cursor's position is cut off, so that no record is in the file twice.
type FileSink struct {
	file     *os.File
	position int64
}

// OpenFileSink opens a file for appending, or creates it.
func OpenFileSink(path string) (*FileSink, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	position, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("export: %w", err)
	}
	return &FileSink{file, position}, nil
}

// Position implements [Rewinder]: the length of the file in bytes.
func (s *FileSink) Position() int64 { return s.position }

// Rewind implements [Rewinder]. It fails if the file is shorter: it was cut or
// replaced, and records would be missing.
func (s *FileSink) Rewind(position int64) error {
	if position > s.position {
		return fmt.Errorf("export: the file %s has %d bytes, the cursor was at %d: it was cut or replaced (remove the cursor to export from the start)",
			s.file.Name(), s.position, position)
	}
	if err := s.file.Truncate(position); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	s.position = position
	return nil
}

// Write implements [Sink]. The lines are durable on return.
func (s *FileSink) Write(_ context.Context, lines []byte) error {
	if _, err := s.file.WriteAt(lines, s.position); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	s.position += int64(len(lines))
	return nil
}

// Close closes the file.
func (s *FileSink) Close() error { return s.file.Close() }
