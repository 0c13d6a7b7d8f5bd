package envelope_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/agentd/agentd/envelope"
)

// vectors are the messages that docs/envelope.md points to. Another program has made
// their signing forms and proofs.
type vectors struct {
	Secret, KeyID string
	Vectors       []struct {
		Name        string
		Message     string
		MessageHex  string
		SigningForm string
		Proven      *bool
		NotJSON     bool
		Faults      []string
	}
}

func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all vectors
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			data := []byte(v.Message)
			if v.MessageHex != "" {
				if data, err = hex.DecodeString(v.MessageHex); err != nil {
					t.Fatal(err)
				}
			}
			e, err := envelope.Decode(data)
			if v.SigningForm == "" {
				refused, ok := errors.AsType[*envelope.Error](err)
				if !ok || refused.NotJSON != v.NotJSON {
					t.Fatalf("got %v", err)
				}
				var paths []string
				for _, f := range refused.Faults {
					paths = append(paths, f.Path)
				}
				if !v.NotJSON && !slices.Equal(paths, v.Faults) {
					t.Errorf("faults of %v, want %v", paths, v.Faults)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if form := string(e.SigningForm()); form != v.SigningForm {
				t.Errorf("the signing form is\n%s\nwant\n%s", form, v.SigningForm)
			}
			if v.Proven == nil {
				return
			}
			mac := hmac.New(sha256.New, []byte(all.Secret))
			mac.Write(e.SigningForm())
			proven := e.Auth.KeyID == all.KeyID && e.Auth.Signature == hex.EncodeToString(mac.Sum(nil))
			if proven != *v.Proven {
				t.Errorf("proven: %v", proven)
			}
		})
	}
}

// A decoder in another language, written from docs/envelope.md, judges the same.
func TestVectorsInNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	out, err := exec.CommandContext(t.Context(), node, "testdata/decode.mjs", "testdata/vectors.json").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
