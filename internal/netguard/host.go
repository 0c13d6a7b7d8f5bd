package netguard

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/truncate"
)

// A hostRule is one line of the operator's list.
type hostRule struct {
	host   string // in lower case; of "*.suffix" the suffix with its dot; empty for "*"
	suffix bool   // host is a suffix
	port   string // "*" for every port, "" for those of http and https
}

// parseHost reads a rule: a host name or an IP address, "*.example.com" for every name
// below example.com, or "*" for every host; then, after a colon, a port or "*".
func parseHost(rule string) (hostRule, error) {
	if strings.Contains(rule, "/") {
		return hostRule{}, errors.New("write the host alone, without a scheme or a path")
	}
	host, port, err := splitPort(rule)
	if err != nil {
		return hostRule{}, err
	}
	r := hostRule{host: host, port: port}
	if suffix, ok := strings.CutPrefix(host, "*"); ok {
		if suffix != "" && (suffix[0] != '.' || len(suffix) < 2) {
			return hostRule{}, errors.New(`"*" stands alone or for whole labels, as in "*.example.com"`)
		}
		r.host, r.suffix = suffix, true
		host = strings.TrimPrefix(suffix, ".")
	}
	if r.suffix && host == "" {
		return r, nil
	}
	canonical, err := canonicalHost(host)
	if err != nil {
		return hostRule{}, err
	}
	if _, err := netip.ParseAddr(canonical); err == nil && r.suffix {
		return hostRule{}, errors.New(`"*." stands before a name, not an address`)
	}
	if r.suffix {
		canonical = "." + canonical
	}
	r.host = canonical
	return r, nil
}

// splitPort splits "host", "host:port", "[v6]" and "[v6]:port".
func splitPort(rule string) (host, port string, err error) {
	rest := ""
	if inner, ok := strings.CutPrefix(rule, "["); ok {
		if host, rest, ok = strings.Cut(inner, "]"); !ok {
			return "", "", errors.New(`"[" has no "]"`)
		}
		if rest == "" {
			return host, "", nil
		}
		if rest[0] != ':' {
			return "", "", errors.New(`after "]" there must be ":" and a port`)
		}
		port = rest[1:]
	} else {
		var ok bool
		if host, port, ok = strings.Cut(rule, ":"); !ok {
			return rule, "", nil
		}
	}
	if port == "*" {
		return host, port, nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return "", "", errors.New("the port is neither a number from 1 to 65535 nor *; write an IPv6 address in brackets")
	}
	return host, port, nil
}

// matches reports whether the rule lists the host, in its canonical form, and the port.
func (r hostRule) matches(host, port, scheme string) bool {
	switch {
	case r.port == "" && port != defaultPort(scheme):
		return false
	case r.port != "" && r.port != "*" && r.port != port:
		return false
	case r.suffix:
		_, err := netip.ParseAddr(host)
		return r.host == "" || err != nil && strings.HasSuffix(host, r.host) && len(host) > len(r.host)
	default:
		return r.host == host
	}
}

func defaultPort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}

// canonicalHost returns the one form of a host in which it is compared and resolved.
//
// It refuses numbers that some resolvers read as IPv4 addresses and others do not, such
// as 2130706433, 0x7f.1 and 127.1: the rule of the WHATWG URL standard is that a host
// whose last label is a number is an address, and the only form of an address that all
// readers agree on is four decimal numbers.
func canonicalHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", errors.New("an address with a zone leads to this machine's own network")
		}
		return addr.Unmap().String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "" || len(name) > 253 {
		return "", errors.New("it is empty or longer than 253 characters")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return "", errors.New("a part between dots is empty or longer than 63 characters")
		}
		if strings.TrimLeft(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", errors.New("it has characters other than letters, digits, hyphens and dots; write an international name in its ASCII form (xn--…)")
		}
	}
	if last := labels[len(labels)-1]; isNumber(last) {
		return "", errors.New("it ends in a number and is no address in the form 192.0.2.1")
	}
	return name, nil
}

// isNumber reports whether a resolver may take the label for a number in base 8, 10 or 16.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.TrimLeft(hex, "0123456789abcdef") == ""
	}
	return strings.TrimLeft(label, "0123456789") == ""
}

func errHost(host string, why error) *failure.Error {
	return failure.Errorf(failure.InvalidArgument, "the host %s of the URL is not valid: %v", truncate.Quote(host), why)
}
