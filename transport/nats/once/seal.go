package once

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
)

// sealMark begins a sealed entry. An entry that is not sealed begins with a brace.
const sealMark = 's'

// errForged is the error for an entry that no replica of this agent has written.
var errForged = errors.New("the entry is not sealed with a key of this agent: somebody else has written it, or another key was in use")

// seal puts the seal of the first secret before an entry. It covers the entry's key, so
// that no entry can stand for another one. Without secrets there is no seal.
func seal(secrets [][]byte, key string, entry []byte) []byte {
	if len(secrets) == 0 {
		return entry
	}
	sealed := append([]byte{sealMark}, base64.RawURLEncoding.AppendEncode(nil, sum(secrets[0], key, entry))...)
	return append(append(sealed, '\n'), entry...)
}

// unseal returns an entry that is sealed with one of the secrets. Where there are none, an
// entry has no seal.
func unseal(secrets [][]byte, key string, data []byte) ([]byte, error) {
	if len(secrets) == 0 {
		if len(data) > 0 && data[0] == sealMark {
			return nil, errForged
		}
		return data, nil
	}
	line, entry, ok := bytes.Cut(data, []byte{'\n'})
	if !ok || len(line) == 0 || line[0] != sealMark {
		return nil, errForged
	}
	mac, err := base64.RawURLEncoding.AppendDecode(nil, line[1:])
	if err != nil {
		return nil, errForged
	}
	for _, secret := range secrets {
		if hmac.Equal(mac, sum(secret, key, entry)) {
			return entry, nil
		}
	}
	return nil, errForged
}

// sum is the seal of an entry: keys have no zero byte.
func sum(secret []byte, key string, entry []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write(entry)
	return h.Sum(nil)
}
