package mailer

import (
	"errors"
	"slices"
	"strings"
)

// The limits of RFC 5321, section 4.5.3.1, and RFC 1035, section 2.3.4.
const (
	maxLocalBytes   = 64
	maxAddressBytes = 254
	maxLabelBytes   = 63
)

// An address is local@domain, both in lower case, by which addresses are compared.
type address struct{ local, domain string }

// parseAddress reads an address that stands alone: a dot-atom of ASCII letters, digits
// and signs, an at sign, and a domain. Everything else that RFC 5322 allows is refused:
// quotes and comments hide characters from whoever reads an address, a name before it is
// a second field, and the signs !, % and | are routes and programs to some servers, which
// lead past a list of domains.
func parseAddress(text string) (address, error) {
	if len(text) > maxAddressBytes {
		return address{}, errors.New("an address has at most 254 bytes")
	}
	lower := strings.ToLower(text)
	local, domain, ok := strings.Cut(lower, "@")
	switch {
	case !ok:
		return address{}, errors.New("it is no address, as in name@example.com")
	case !isLocal(local):
		return address{}, errors.New("what stands before the @ is not 1 to 64 letters, digits and signs of plain addresses")
	case !isDomain(domain):
		return address{}, errors.New("what stands behind the @ is no domain of letters, digits, hyphens and dots")
	}
	return address{local, domain}, nil
}

func isLocal(s string) bool {
	const signs = "!#$%&'*+-/=?^_`{|}~"
	const refused = "!%|`"
	if s == "" || len(s) > maxLocalBytes {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || strings.ContainsFunc(part, func(c rune) bool {
			return !isLetterOrDigit(c) && (!strings.ContainsRune(signs, c) || strings.ContainsRune(refused, c))
		}) {
			return false
		}
	}
	return true
}

// isDomain takes a domain in lower case. Labels of other alphabets stand in their ASCII
// form (RFC 5891), and addresses in brackets are refused: they lead past the servers that
// a domain names.
func isDomain(s string) bool {
	if s == "" || len(s) > maxAddressBytes {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxLabelBytes || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, func(c rune) bool { return !isLetterOrDigit(c) && c != '-' }) {
			return false
		}
	}
	return true
}

func isLetterOrDigit(c rune) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// A rule is one line of the operator's list of recipients.
type rule struct {
	local  string // "" for everybody of the domain
	domain string
	below  bool // the hosts below domain, and not domain itself
}

func parseRule(text string) (rule, error) {
	var r rule
	rest, wild := strings.CutPrefix(text, "*@")
	if wild {
		rest, r.below = strings.CutPrefix(rest, "*.")
		rest = "any@" + rest
	}
	a, err := parseAddress(rest)
	if err != nil || strings.Contains(a.local, "*") {
		return rule{}, errors.New("write it as name@example.com, *@example.com or *@*.example.com")
	}
	r.domain = a.domain
	if !wild {
		r.local = a.local
	}
	return r, nil
}

func (r rule) matches(a address) bool {
	if r.below {
		return strings.HasSuffix(a.domain, "."+r.domain)
	}
	return a.domain == r.domain && (r.local == "" || r.local == a.local)
}

// mayGet reports whether somebody may be written to.
func (m *Mailer) mayGet(a address) bool {
	return m.recipients == nil || slices.ContainsFunc(m.recipients, func(r rule) bool { return r.matches(a) })
}
