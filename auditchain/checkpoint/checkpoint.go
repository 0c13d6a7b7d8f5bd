package checkpoint

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// MaxBytes bounds a signed checkpoint: a larger note is rejected before it is parsed.
const MaxBytes = 64 << 10

// A Checkpoint is the state of a log at one size.
type Checkpoint struct {
	// Origin names the log, and is the name of its keys.
	Origin string
	// Size is the number of records covered.
	Size int64
	// Root is the root of the RFC 6962 Merkle tree over them.
	Root tlog.Hash
}

var (
	// ErrMalformed is text that is not a checkpoint.
	ErrMalformed = errors.New("checkpoint: malformed")
	// ErrSignature is a note with a false signature.
	ErrSignature = errors.New("checkpoint: false signature")
	// ErrUntrusted is a note without a signature by a trusted key.
	ErrUntrusted = errors.New("checkpoint: not signed by a trusted key")
	// ErrInconsistent is a pair of signed states neither of which can have grown
	// from the other: proof that the log was rewritten.
	ErrInconsistent = errors.New("checkpoint: the log was rewritten")
)

// Text returns the part of a checkpoint that is signed.
func (c Checkpoint) Text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// Parse reads what [Checkpoint.Text] writes. Lines after the third (extension
// lines) are allowed and ignored, as c2sp.org/tlog-checkpoint requires. Each
// number has one spelling only: a text that parses is the text that was signed.
// The error is [ErrMalformed].
func Parse(text string) (Checkpoint, error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) < 4 || lines[0] == "" {
		return Checkpoint{}, fmt.Errorf("%w: it needs lines for origin, size and root", ErrMalformed)
	}
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil || size > math.MaxInt64 || strconv.FormatUint(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("%w: the size is not a decimal number", ErrMalformed)
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize || base64.StdEncoding.EncodeToString(root) != lines[2] {
		return Checkpoint{}, fmt.Errorf("%w: the root is not a base64 SHA-256 value", ErrMalformed)
	}
	return Checkpoint{Origin: lines[0], Size: int64(size), Root: tlog.Hash(root)}, nil
}

// Sign returns the checkpoint as a note with the signatures of signers.
func Sign(c Checkpoint, signers ...note.Signer) ([]byte, error) {
	text := c.Text()
	if got, err := Parse(text); err != nil || got != c {
		return nil, fmt.Errorf("%w: origin %q", ErrMalformed, c.Origin)
	}
	signed, err := note.Sign(&note.Note{Text: text}, signers...)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: signing: %w", err)
	}
	return signed, nil
}

// A Signed is a checkpoint whose signatures were checked.
type Signed struct {
	Checkpoint
	// Note is the text it came from.
	Note []byte
	// Key is the verifier key, as [Key.Verifier] returns it, of the log's
	// signature.
	Key string
	// Cosigners names the witnesses whose signatures are good.
	Cosigners []string
	// CosignedAt is the newest time that those signatures state, zero if none
	// does, as in the format before cosignature/v1.
	CosignedAt time.Time
}

// Keys is a set of verifier keys, parsed once. The zero value is empty. It may
// be read by several goroutines, but not while keys are added.
type Keys struct {
	verifiers map[string]note.Verifier // by key id
	texts     map[string]string        // by key id
}

// NewKeys returns a set of verifier keys. The error is [ErrUntrusted], for a text
// that is not a key.
func NewKeys(keys ...string) (*Keys, error) {
	set := &Keys{}
	for _, key := range keys {
		if err := set.Add(key); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// Add adds a verifier key: of a log, as [Key.Verifier] returns it, or of a
// witness, as [Key.CosignatureVerifier] does.
func (k *Keys) Add(key string) error {
	v, err := newVerifier(key)
	if err != nil {
		return fmt.Errorf("%w: %q is not a verifier key", ErrUntrusted, key)
	}
	if k.verifiers == nil {
		k.verifiers, k.texts = map[string]note.Verifier{}, map[string]string{}
	}
	id := keyID(v.Name(), v.KeyHash())
	k.verifiers[id], k.texts[id] = v, key
	return nil
}

// Contains reports whether the verifier key is in the set.
func (k *Keys) Contains(key string) bool {
	v, err := newVerifier(key)
	return err == nil && k.texts[keyID(v.Name(), v.KeyHash())] == key
}

// Verifier implements [note.Verifiers].
func (k *Keys) Verifier(name string, hash uint32) (note.Verifier, error) {
	if v, ok := k.verifiers[keyID(name, hash)]; ok {
		return v, nil
	}
	return nil, &note.UnknownVerifierError{Name: name, KeyHash: hash}
}

// Open checks a signed checkpoint. It is good if a key of the set that is named
// after its origin has signed it, and no signature by a key of the set is false.
// Other good signatures are those of witnesses. Signatures by unknown keys are
// ignored, as c2sp.org/signed-note requires.
//
// The error is [ErrMalformed], [ErrSignature] or [ErrUntrusted].
func Open(signed []byte, keys *Keys) (*Signed, error) {
	if len(signed) > MaxBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrMalformed, MaxBytes)
	}
	n, err := note.Open(signed, keys)
	if err != nil {
		return nil, openError(err)
	}
	c, err := Parse(n.Text)
	if err != nil {
		return nil, err
	}
	out := &Signed{Checkpoint: c, Note: signed}
	for _, sig := range n.Sigs {
		_, cosigned := keys.verifiers[keyID(sig.Name, sig.Hash)].(*cosignatureVerifier)
		if at, ok := signedAt(sig); cosigned && ok && at.After(out.CosignedAt) {
			out.CosignedAt = at
		}
		switch {
		case cosigned, sig.Name != c.Origin:
			out.Cosigners = append(out.Cosigners, sig.Name)
		case out.Key == "":
			out.Key = keys.texts[keyID(sig.Name, sig.Hash)]
		}
	}
	if out.Key == "" {
		return nil, fmt.Errorf("%w: no signature by a key named %s", ErrUntrusted, c.Origin)
	}
	return out, nil
}

func openError(err error) error {
	if _, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		return fmt.Errorf("%w: signed by unknown keys only", ErrUntrusted)
	}
	if e, ok := errors.AsType[*note.InvalidSignatureError](err); ok {
		return fmt.Errorf("%w: of %s", ErrSignature, e.Name)
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// keyID returns the part of a verifier key by which signatures name it.
func keyID(name string, hash uint32) string { return fmt.Sprintf("%s+%08x", name, hash) }

// Merge returns the note with the signatures of both notes, whose texts must be
// equal ([ErrInconsistent] otherwise). It checks no signature.
func Merge(a, b []byte) ([]byte, error) {
	if len(a) > MaxBytes || len(b) > MaxBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrMalformed, MaxBytes)
	}
	textA, sigsA, okA := cutSignatures(a)
	textB, sigsB, okB := cutSignatures(b)
	if !okA || !okB {
		return nil, fmt.Errorf("%w: no signatures", ErrMalformed)
	}
	if textA != textB {
		return nil, fmt.Errorf("%w: the notes are of different states", ErrInconsistent)
	}
	merged := []byte(textA)
	var seen []string
	for line := range strings.Lines(sigsA + sigsB) {
		if !slices.Contains(seen, line) {
			seen = append(seen, line)
			merged = append(merged, line...)
		}
	}
	return merged, nil
}

// Signers names the keys that have signed a note, in order, each once. It checks
// no signature. Text that is not a note has none.
func Signers(signed []byte) []string {
	_, lines, _ := cutSignatures(signed)
	names := []string{}
	for line := range strings.Lines(lines) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "— "), " ")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// cutSignatures splits a note after the blank line that ends its text.
func cutSignatures(signed []byte) (text, signatures string, ok bool) {
	s := string(signed)
	i := strings.LastIndex(s, "\n\n")
	if i < 0 || !strings.HasSuffix(s, "\n") || len(s) == i+2 {
		return "", "", false
	}
	return s[:i+2], s[i+2:], true
}
