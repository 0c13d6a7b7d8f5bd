package rootfs

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

// chunk is how much is read between two looks at the context.
const chunk = 256 << 10

// Read returns the content of a file. One that is longer than the limit is refused
// whole: half of a document misleads.
func (t *Tree) Read(ctx context.Context, path string) ([]byte, error) {
	file, info, err := t.open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return t.readAll(ctx, path, file, info.Size())
}

// readAll reads to the end or the limit, whatever size the file had when it was opened:
// it may grow while it is read.
func (t *Tree) readAll(ctx context.Context, path string, file io.Reader, size int64) ([]byte, error) {
	limit := t.options.MaxBytes
	tooLarge := func() error {
		return failure.Errorf(failure.TooLarge, "%s has more than %d bytes", truncate.Quote(path), limit)
	}
	if size > limit {
		return nil, tooLarge()
	}
	var content bytes.Buffer
	content.Grow(int(size) + bytes.MinRead)
	for rest := limit + 1; rest > 0; {
		if ended := failure.Ended(ctx, "reading the file"); ended != nil {
			return nil, ended
		}
		n, err := io.CopyN(&content, file, min(chunk, rest))
		rest -= n
		if err == io.EOF { //nolint:errorlint // io.CopyN returns it as it is
			return content.Bytes(), nil
		}
		if err != nil {
			return nil, translate(path, err)
		}
	}
	return nil, tooLarge()
}

// The encodings in which a file is shown as text.
const (
	UTF8   = "utf-8"
	Latin1 = "latin1"
	Base64 = "base64"
)

// Encodings returns the names that [Decode] takes.
func Encodings() []string { return []string{UTF8, "utf8", Latin1, "iso-8859-1", Base64} }

// Decode makes the content of a file into text. A file that is not what the encoding
// says is an error, not a text with holes.
func Decode(content []byte, encoding string) (string, error) {
	switch encoding {
	case UTF8, "utf8", "":
		if at := invalidUTF8(content); at >= 0 {
			return "", failure.Errorf(failure.Unsupported, "the file is not UTF-8 (byte %d): read it as latin1 or base64", at)
		}
		return string(content), nil
	case Latin1, "iso-8859-1":
		runes := make([]rune, len(content))
		for i, b := range content {
			runes[i] = rune(b)
		}
		return string(runes), nil
	case Base64:
		return base64.StdEncoding.EncodeToString(content), nil
	}
	return "", failure.Errorf(failure.InvalidArgument, "the encoding %s is not known: it is utf-8, latin1 or base64", truncate.Quote(encoding))
}

// invalidUTF8 returns where content stops being UTF-8, or -1.
func invalidUTF8(content []byte) int {
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
