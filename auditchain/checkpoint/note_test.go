package checkpoint

import (
	"testing"

	"golang.org/x/mod/sumdb/note"
)

// noteOf signs any text.
func noteOf(t testing.TB, text string, key *Key) []byte {
	t.Helper()
	signed, err := note.Sign(&note.Note{Text: text}, key.Signer())
	if err != nil {
		t.Fatal(err)
	}
	return signed
}
