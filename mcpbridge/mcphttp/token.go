package mcphttp

import (
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"strings"
)

const (
	minTokenBits = 128
	minDistinct  = 8 // a random token of 128 bits has fewer different characters less than once in 10^9, unless it is decimal
)

const (
	digits     = "0123456789"
	lowerCase  = "abcdefghijklmnopqrstuvwxyz"
	bearerText = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + lowerCase + digits + "._~+/-"
)

// only reports whether a text has at least one character, and no others than these.
func only(characters, text string) bool { return text != "" && strings.Trim(text, characters) == "" }

// isBearer reports whether a text has the syntax of bearer tokens (RFC 6750 section 2.1).
func isBearer(token string) bool { return only(bearerText, strings.TrimRight(token, "=")) }

// weakness says why a token is refused, or nothing. Nobody can tell from a token how it was
// chosen: this finds those that cannot have 128 bits.
func weakness(secret string) string {
	if secret == "" {
		return "is required"
	}
	if !isBearer(secret) {
		return "has characters that a bearer token cannot have (RFC 6750)"
	}
	pool, distinct := alphabet(secret), map[rune]bool{}
	for _, c := range secret {
		distinct[c] = true
	}
	if float64(len(secret))*math.Log2(float64(pool)) < minTokenBits || len(distinct) < minDistinct {
		return "has less than 128 bits: take a random one, such as that of `openssl rand -hex 32`"
	}
	return ""
}

// alphabet is the size of the smallest usual alphabet that a token may be drawn from.
func alphabet(secret string) int {
	for _, a := range []struct {
		letters string
		size    int
	}{
		{"0123456789", 10},
		{"0123456789abcdef", 16},
		{"0123456789ABCDEF", 16},
		{"abcdefghijklmnopqrstuvwxyz", 26},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32},
		{"abcdefghijklmnopqrstuvwxyz0123456789", 36},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 36},
	} {
		if strings.Trim(strings.TrimRight(secret, "="), a.letters) == "" {
			return a.size
		}
	}
	return 64
}

// A digest stands for a token: the handler keeps no secret.
type digest [sha256.Size]byte

// A staticToken is a token as the handler keeps it.
type staticToken struct {
	client string
	digest digest
}

// lookUp finds a token. It compares digests, each of them whole and all of them each time, so
// that how long it takes says nothing about the tokens.
func lookUp(tokens []staticToken, secret string) (found staticToken, ok bool) {
	have := digest(sha256.Sum256([]byte(secret)))
	for _, t := range tokens {
		if subtle.ConstantTimeCompare(have[:], t.digest[:]) == 1 {
			found, ok = t, true
		}
	}
	return found, ok
}
