package envelope_test

import (
	"testing"

	"github.com/agentd/agentd/envelope"
)

// The digests are those of sha256sum, so that anybody can compute them.
func TestDigestPayload(t *testing.T) {
	for payload, want := range map[string]string{
		"null":            "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b",
		`{"cents":4711}`:  "a13ded8b2c5c0eb0809c3577975eaad11d221b3df9fa0ac0b91cd787363b57b3",
		`{"cents": 4711}`: "63c4c6ee75465ac7aec697c1c5a1d4d917680bc13bf1fc2eff3819685fa9d7a4",
	} {
		if got := envelope.DigestPayload([]byte(payload)).String(); got != want {
			t.Errorf("%q: %s", payload, got)
		}
	}
	if envelope.DigestPayload(nil) != envelope.DigestPayload([]byte("null")) || envelope.DigestPayload([]byte{}) == envelope.DigestPayload(nil) {
		t.Error("no payload is null, and nothing else is")
	}
	if (envelope.PayloadDigest{}).String() != "" {
		t.Error("the zero value is a digest")
	}
}
