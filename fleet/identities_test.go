package fleet_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/fleet"
)

const (
	keyA = "UCXPLCIPSSBVAQAIDFQIJCIHIEFWUUEOOCHOIELOCVDCTBU5B7UHN7OZ"
	keyB = "UCTX6VFN44P2XDUL7YS43ZY6EK5ZLT7MTD3DU2WRNUSHXUF5DSUXMHN2"
	keyC = "UC7NN3JJJX2EKGYYFHOX3PHU2VV2ST3HF3HCEOJGGVJPVFMOVGIXPIXH"
)

// identityFleet writes a fleet of one member with these two files.
func identityFleet(t *testing.T, peers, identities string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"fleet.yaml":     "version: 1\nname: f\nagents: [{id: a, path: a}]\n",
		"a/agent.yaml":   "name: a\n",
		"rpc-peers.yaml": peers,
	}
	if identities != "" {
		files["identities.yaml"] = identities
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func peerWith(auth string) string {
	return "version: 1\npeers:\n  - agent: agent://b\n    transports: [{kind: memory, topics: {requests: r}}]\n" + auth
}

func TestIdentityOfAnAgent(t *testing.T) {
	const listed = "version: 1\nidentities:\n" +
		"  - {agent: agent://b, auth: {provider: nkey, publicKey: " + keyB + "}}\n" +
		"  - {agent: agent://c, auth: {provider: hmac, keyId: k, secretRef: env:C}}\n"
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name, peers, identities, of string
		want                        *fleet.PeerAuth
	}{
		{"none", peerWith(""), "", "b", nil},
		{"a peer's, from identities", peerWith(""), listed, "b", &fleet.PeerAuth{Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keyB}}}},
		{"one that is no peer", peerWith(""), listed, "c", &fleet.PeerAuth{Provider: fleet.HMAC, Secrets: []fleet.SharedSecret{{KeyID: "k", Ref: "env:C"}}}},
		{"the peers file comes first", peerWith("    auth: {provider: nkey, publicKey: " + keyA + "}\n"), listed, "b", &fleet.PeerAuth{Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keyA}}}},
		{"the peers file leaves the key to identities", peerWith("    auth: {provider: nkey}\n"), listed, "b", &fleet.PeerAuth{Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keyB}}}},
		{"two public keys", peerWith("    auth: {provider: nkey, publicKeys: [{key: " + keyA + ", notAfter: '2026-12-01T00:00:00Z'}, {key: " + keyC + "}]}\n"), "", "b",
			&fleet.PeerAuth{Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keyA, NotAfter: day}, {Key: keyC}}}},
		{"two secrets", peerWith("    auth: {provider: hmac, keys: [{keyId: x, secretRef: env:X}, {keyId: y, secretRef: 'file:/y', notBefore: '2026-12-01T00:00:00Z'}]}\n"), "", "b",
			&fleet.PeerAuth{Provider: fleet.HMAC, Secrets: []fleet.SharedSecret{{KeyID: "x", Ref: "env:X"}, {KeyID: "y", Ref: "file:/y", NotBefore: day}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := fleet.Load(identityFleet(t, test.peers, test.identities), fleet.LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := f.Identity(f.Members[0], envelope.AddressOf(test.of))
			if got != nil {
				got.Position = fleet.Position{}
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestBadIdentities(t *testing.T) {
	for _, test := range []struct{ name, peers, identities, want string }{
		{"nobody gives the key", peerWith("    auth: {provider: nkey}\n"), "", "rpc-peers.yaml:5:5: /peers/0/auth: nothing gives the public key of agent://b"},
		{"a seed", peerWith("    auth: {provider: nkey, publicKey: SUAHH7QW}\n"), "", "a seed stands here, which is secret"},
		{"no key", peerWith("    auth: {provider: nkey, publicKey: Uxx}\n"), "", "expected a public nkey of a user"},
		{"both", peerWith("    auth: {provider: nkey, publicKey: " + keyA + ", publicKeys: [{key: " + keyB + "}]}\n"), "", "one key too many"},
		{"both secrets", peerWith("    auth: {provider: hmac, keyId: a, keys: [{keyId: b, secretRef: env:B}]}\n"), "", "one key too many"},
		{"a keyId twice", peerWith("    auth: {provider: hmac, keys: [{keyId: b, secretRef: env:B}, {keyId: b, secretRef: env:C}]}\n"), "", "two keys have this keyId"},
		{"never counts", peerWith("    auth: {provider: hmac, keys: [{keyId: b, secretRef: env:B, notBefore: '2026-12-02T00:00:00Z', notAfter: '2026-12-01T00:00:00Z'}]}\n"), "", "the key would never count"},
		{"no date", peerWith("    auth: {provider: hmac, keys: [{keyId: b, secretRef: env:B, notBefore: tomorrow}]}\n"), "", "expected a date and time as in RFC 3339"},
		{"twice", peerWith(""), "version: 1\nidentities:\n  - {agent: agent://b, auth: {provider: nkey, publicKey: " + keyA + "}}\n  - {agent: agent://b, auth: {provider: nkey, publicKey: " + keyB + "}}\n", "identities.yaml:4:5: /identities/1: duplicate identity of agent://b, first on line 3"},
		{"without key", peerWith(""), "version: 1\nidentities: [{agent: agent://b, auth: {provider: nkey}}]\n", "agent://b has no public key"},
		{"misspelt", peerWith(""), "version: 1\nidentites: []\n", `did you mean "identities"?`},
		{"minimum", peerWith(""), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := identityFleet(t, test.peers, test.identities)
			_, err := fleet.Load(root, fleet.LoadOptions{})
			switch {
			case test.want == "" && err != nil:
				t.Errorf("a good fleet is refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), root+"/", ""), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "SUAHH7QW") {
				t.Errorf("the fault shows a seed: %v", err)
			}
		})
	}
}

func TestWriteIdentitiesIsReadBack(t *testing.T) {
	root := identityFleet(t, peerWith(""), "")
	later := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []fleet.Identity{
		{Agent: "agent://b", Auth: &fleet.PeerAuth{Provider: fleet.NKey, PublicKeys: []fleet.PublicKey{{Key: keyA, NotAfter: later}, {Key: keyB, NotBefore: later}}}},
		{Agent: "agent://c", Auth: &fleet.PeerAuth{Provider: fleet.HMAC, Secrets: []fleet.SharedSecret{{KeyID: `k "1"`, Ref: "env:K"}}}},
	}
	if err := fleet.WriteIdentities(root, want); err != nil {
		t.Fatal(err)
	}
	f, err := fleet.Load(root, fleet.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Identities {
		f.Identities[i].Auth.Position = fleet.Position{}
	}
	if !reflect.DeepEqual(f.Identities, want) {
		t.Errorf("got %+v", f.Identities)
	}
	before, err := os.ReadFile(filepath.Join(root, fleet.IdentitiesName))
	if err != nil {
		t.Fatal(err)
	}
	if err := fleet.WriteIdentities(root, []fleet.Identity{{Agent: "agent://d", Auth: &fleet.PeerAuth{Provider: fleet.OIDC}}}); err == nil {
		t.Error("what cannot be written was written")
	}
	if after, _ := os.ReadFile(filepath.Join(root, fleet.IdentitiesName)); string(after) != string(before) {
		t.Error("a failure changed the file")
	}
	if err := fleet.WriteIdentities(root, nil); err != nil {
		t.Fatal(err)
	}
	if f, err = fleet.Load(root, fleet.LoadOptions{}); err != nil || len(f.Identities) != 0 {
		t.Errorf("no identities: %v, %v", f, err)
	}
}

// Whatever identities are written are read back, and the file is readable by
// agents that run as other users: it holds public keys and names of secrets.
func TestIdentitiesRoundTrip(t *testing.T) {
	root := identityFleet(t, peerWith(""), "")
	moment := rapid.Map(rapid.Int64Range(0, 4_000_000_000), func(s int64) time.Time {
		if s%3 == 0 {
			return time.Time{} // no bound
		}
		return time.Unix(s, 0).UTC()
	})
	window := func(t *rapid.T) (notBefore, notAfter time.Time) {
		notBefore, notAfter = moment.Draw(t, "not before"), moment.Draw(t, "not after")
		if !notAfter.IsZero() && notAfter.Before(notBefore) {
			notBefore, notAfter = notAfter, notBefore
		}
		return notBefore, notAfter
	}
	text := rapid.StringMatching(`[ -~éü]{1,12}`).Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
	rapid.Check(t, func(t *rapid.T) {
		var want []fleet.Identity
		for i := range rapid.IntRange(0, 4).Draw(t, "identities") {
			auth := &fleet.PeerAuth{Provider: fleet.NKey}
			if rapid.Bool().Draw(t, "hmac") {
				auth.Provider = fleet.HMAC
			}
			for k := range rapid.IntRange(1, 3).Draw(t, "keys") {
				notBefore, notAfter := window(t)
				if auth.Provider == fleet.NKey {
					auth.PublicKeys = append(auth.PublicKeys, fleet.PublicKey{Key: []string{keyA, keyB, keyC}[k], NotBefore: notBefore, NotAfter: notAfter})
				} else {
					auth.Secrets = append(auth.Secrets, fleet.SharedSecret{KeyID: fmt.Sprint(k) + text.Draw(t, "id"), Ref: text.Draw(t, "ref"), NotBefore: notBefore, NotAfter: notAfter})
				}
			}
			want = append(want, fleet.Identity{Agent: envelope.AddressOf(fmt.Sprintf("b%d", i)), Auth: auth})
		}
		if err := fleet.WriteIdentities(root, want); err != nil {
			t.Fatal(err)
		}
		f, err := fleet.Load(root, fleet.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Identities {
			f.Identities[i].Auth.Position = fleet.Position{}
		}
		if !reflect.DeepEqual(f.Identities, want) {
			t.Fatalf("got %+v\nwant %+v", f.Identities, want)
		}
	})
	info, err := os.Stat(filepath.Join(root, fleet.IdentitiesName))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".identities-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A file that cannot be replaced is an error, and leaves nothing behind.
func TestWriteIdentitiesFails(t *testing.T) {
	if err := fleet.WriteIdentities(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no directory: %v", err)
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, fleet.IdentitiesName, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fleet.WriteIdentities(root, nil); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".identities-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
