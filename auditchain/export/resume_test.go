package export

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Wherever a file sink fails, at whatever batch size, the file holds every record
// once when the export has finished.
func TestFailuresAnywhereLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	const records = 23
	l := newLog(t, records)
	folder := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		path := filepath.Join(folder, "out"+string(rune('a'+run%26)))
		if err := errors.Join(os.RemoveAll(path), os.RemoveAll(path+".cursor")); err != nil {
			rt.Fatal(err)
		}
		format := rapid.SampledFrom([]Format{JSONL, OCSF, CEF}).Draw(rt, "format")
		for attempt := 0; ; attempt++ {
			after, half := rapid.IntRange(0, 3).Draw(rt, "batches"), rapid.Bool().Draw(rt, "half")
			sink, err := OpenFileSink(path)
			if err != nil {
				rt.Fatal(err)
			}
			var s Sink = &crashingSink{sink, after, half}
			if attempt == 4 {
				s = sink
			}
			_, err = runAt(t, context.Background(), l.Reader, path+".cursor", s, Options{Format: format, Batch: rapid.IntRange(1, 9).Draw(rt, "batch")})
			if cerr := sink.Close(); cerr != nil {
				rt.Fatal(cerr)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, errCrash) {
				rt.Fatal(err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.Count(text, []byte("\n")) != records {
			rt.Fatalf("%d lines of %d, %v", bytes.Count(text, []byte("\n")), records, err)
		}
		if format == JSONL && !slices.IsSorted(seqs(t, text)) {
			rt.Fatalf("records %v", seqs(t, text))
		}
	})
}

// A receiver on a network that fails after it has taken a batch sees that batch
// again, and only that one.
func TestStreamRepeatsTheLastBatchOnly(t *testing.T) {
	t.Parallel()
	l, cursor := newLog(t, 25), filepath.Join(t.TempDir(), "cursor")
	var out bytes.Buffer
	batches := 0
	result, err := runAt(t, t.Context(), l.Reader, cursor, sinkFunc(func(lines []byte) error {
		out.Write(lines)
		if batches++; batches == 2 {
			return errCrash
		}
		return nil
	}), Options{Format: JSONL, Batch: 10})
	if !errors.Is(err, errCrash) || result != (Result{Exported: 10, Last: 10}) {
		t.Fatalf("%+v, %v", result, err)
	}
	result, err = runAt(t, t.Context(), l.Reader, cursor, WriterSink{&out}, Options{Format: JSONL, Batch: 10})
	if err != nil || result != (Result{Exported: 15, Last: 25}) {
		t.Fatalf("%+v, %v", result, err)
	}
	list := seqs(t, out.Bytes())
	if len(list) != 35 {
		t.Fatalf("%d lines: %v", len(list), list)
	}
	repeated := slices.Concat(list[:20], list[30:]) // without the second copy of 11 to 20
	for i, seq := range repeated {
		if seq != int64(i+1) {
			t.Fatalf("record %d at place %d: %v", seq, i, list)
		}
	}
}

// A cursor that was cut anywhere is an error that names the file. Taking it for a
// new one would export every record twice.
func TestTornCursor(t *testing.T) {
	t.Parallel()
	l, path := newLog(t, 3), filepath.Join(t.TempDir(), "cursor")
	if _, err := runAt(t, t.Context(), l.Reader, path, WriterSink{&bytes.Buffer{}}, Options{Format: JSONL}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil || whole[len(whole)-1] != '\n' {
		t.Fatalf("%q, %v", whole, err)
	}
	for n := range len(whole) - 1 { // but for the line break
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := OpenCursor(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove it") {
			t.Fatalf("%d of %d bytes: %+v, %v", n, len(whole), c, err)
		}
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte{0}, len(whole)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCursor(path); err == nil {
		t.Error("a cursor of zeros is read")
	}
	if err := os.WriteFile(path, bytes.TrimSpace(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if result, err := runAt(t, t.Context(), l.Reader, path, WriterSink{&out}, Options{Format: JSONL}); err != nil || result != (Result{Last: 3}) || out.Len() != 0 {
		t.Errorf("the whole cursor: %+v, %v, %q", result, err, &out)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A cursor that cannot be moved ends the export: going on would repeat more and
// more of it after the next crash.
func TestCursorThatCannotMove(t *testing.T) {
	t.Parallel()
	l, folder := newLog(t, 25), filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := OpenCursor(filepath.Join(folder, "cursor"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	batches := 0
	result, err := Run(t.Context(), l.Reader, c, sinkFunc(func([]byte) error {
		batches++
		return os.RemoveAll(folder)
	}), Options{Format: JSONL, Batch: 10})
	if err == nil || !strings.Contains(err.Error(), "moving the cursor") || batches != 1 || result.Exported != 0 {
		t.Errorf("%d batches, %+v, %v", batches, result, err)
	}
	if _, err := OpenCursor(filepath.Join(folder, "cursor")); err == nil {
		t.Error("a cursor in a folder that does not exist")
	}
}

func TestSinksThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if _, err := OpenFileSink(t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "export: ") {
		t.Errorf("a folder: %v", err)
	}
	sink, err := OpenFileSink(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"write": sink.Write(t.Context(), []byte("x\n")), "rewind": sink.Rewind(0)} {
		if !errors.Is(err, os.ErrClosed) || sink.Position() != 0 {
			t.Errorf("%s of a closed file: %v, at %d", name, err, sink.Position())
		}
	}
	l := newLog(t, 3)
	result, err := Run(t.Context(), l.Reader, NewCursor(), sink, Options{Format: JSONL})
	if !errors.Is(err, os.ErrClosed) || result.Exported != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// Without Follow, an export that is cancelled says so: it is not complete.
func TestCancelledExport(t *testing.T) {
	t.Parallel()
	l, cursor := newLog(t, 25), NewCursor()
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	_, err := Run(ctx, l.Reader, cursor, sinkFunc(func(lines []byte) error {
		out.Write(lines)
		cancel()
		return ctx.Err()
	}), Options{Format: JSONL, Batch: 10})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	out.Reset() // the receiver has not confirmed it
	result, err := Run(t.Context(), l.Reader, cursor, WriterSink{&out}, Options{Format: JSONL})
	if err != nil || result.Exported != 25 {
		t.Errorf("%+v, %v", result, err)
	}
	wantSeqs(t, out.Bytes(), 1, 25)
}
