package capability

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/spelling"
	"github.com/agentd/agentd/internal/strictyaml"
)

// A scope names what a skill does to the world outside it, as <domain>:<verb>.
// The words of the domains that agentd knows are closed lists, so that a typing
// error is found where it stands: a misspelt need would be granted to nobody, and a
// misspelt grant would grant nothing. Other domains begin with [OwnDomain], and
// their words are their owner's.

// OwnDomain begins a domain that agentd does not know, as in x-billing:refund.
const OwnDomain = "x-"

// maxScopeBytes bounds what is published to peers and repeated in records.
const maxScopeBytes = 128

// scopeVerbs lists the verbs of each known domain: those of the ARAL standard, then
// those of the examples in its guide to action registries.
func scopeVerbs() map[string][]string {
	return map[string][]string{
		"network":    {"read", "write"},
		"filesystem": {"read", "write"},
		"database":   {"read", "write"},
		"secrets":    {"read", "write"},
		"compute":    {"execute"},

		"http":    {"read", "write"},
		"file":    {"read", "write"},
		"email":   {"read", "send"},
		"notify":  {"send"},
		"weather": {"read"},
	}
}

// decodePermissions reads the scopes that a skill needs. Each names one domain; the
// verb * stands for the whole of it. The result is nil only where there is no such list.
func decodePermissions(v strictyaml.Value) (scopes []string) {
	if v.Present() {
		scopes = []string{}
	}
	for _, item := range v.List() {
		text := item.Text()
		domain, verb, _ := strings.Cut(text, ":")
		switch {
		case text == "": // a fault already
		case strings.ContainsAny(domain, "*?") || verb != "*" && strings.ContainsAny(verb, "*?"):
			item.Fault(fmt.Sprintf("the permission %q is a pattern, and does not say what the skill needs", text),
				"name a domain and a verb, such as network:read, or network:* for all its verbs")
		default:
			CheckScope(item, text)
		}
		scopes = append(scopes, text)
	}
	return scopes
}

// CheckScope records a fault if text is no scope and no pattern over scopes. In a
// pattern * is any run of characters and ? is one; ** alone is every scope.
func CheckScope(v strictyaml.Value, text string) { checkScope(v, text) }

// A faulter takes what is wrong with a value.
type faulter interface{ Fault(message, hint string) }

// A scopeError is the first fault of a scope that stands in no file.
type scopeError struct{ text string }

func (e *scopeError) Error() string { return e.text }

func (e *scopeError) Fault(message, hint string) {
	if hint != "" {
		message += " (" + hint + ")"
	}
	if e.text == "" {
		e.text = message
	}
}

// ParseScope returns what [CheckScope] would find, for scopes that stand in no file.
func ParseScope(text string) error {
	var found scopeError
	if checkScope(&found, text); found.text != "" {
		return &found
	}
	return nil
}

func checkScope(v faulter, text string) {
	if text == "**" {
		return
	}
	domain, verb, ok := strings.Cut(text, ":")
	switch {
	case !ok || strings.Contains(verb, ":"):
		v.Fault("a scope is <domain>:<verb>", "such as network:read, filesystem:write or database:*")
	case len(text) > maxScopeBytes:
		v.Fault(fmt.Sprintf("the scope has %d bytes, more than %d", len(text), maxScopeBytes), "")
	case strings.HasPrefix(domain, OwnDomain):
		if !scopeWord(domain[len(OwnDomain):]) || !scopeWord(verb) {
			v.Fault(fmt.Sprintf("%q is no scope of an own domain", text), "lower-case letters, digits, -, _ and . on both sides, such as x-billing:refund")
		}
	default:
		checkKnown(v, domain, verb)
	}
}

// checkKnown checks a scope, or a pattern, by the closed lists.
func checkKnown(v faulter, domain, verb string) {
	known := scopeVerbs()
	domains := slices.Sorted(maps.Keys(known))
	matched := slices.DeleteFunc(slices.Clone(domains), func(d string) bool { return !covers(domain, d) })
	if len(matched) == 0 {
		own := "a domain of your own begins with " + OwnDomain
		if scopeWord(domain) && scopeWord(verb) {
			own += ", such as " + OwnDomain + domain + ":" + verb
		}
		hint := own + "; agentd knows " + strings.Join(domains, ", ")
		if near := spelling.Nearest(domain, domains); near != "" {
			hint = fmt.Sprintf("did you mean %q? %s", near+":"+likelyVerb(verb, known[near]), own)
		}
		v.Fault(fmt.Sprintf("the scope %q names no domain that agentd knows", domain+":"+verb), hint)
		return
	}
	var verbs []string
	for _, d := range matched {
		verbs = append(verbs, known[d]...)
	}
	slices.Sort(verbs)
	verbs = slices.Compact(verbs)
	if slices.ContainsFunc(verbs, func(known string) bool { return covers(verb, known) }) {
		return
	}
	hint := ""
	if near := spelling.Nearest(verb, verbs); near != "" {
		hint = fmt.Sprintf("did you mean %q?", domain+":"+near)
	}
	v.Fault(fmt.Sprintf("the scope %q matches nothing: the verbs of %s are %s", domain+":"+verb, domain, strings.Join(verbs, " and ")), hint)
}

// likelyVerb returns the verb that a misspelt scope probably meant: its own if the
// domain has it, or the nearest, or the first.
func likelyVerb(verb string, known []string) string {
	if near := spelling.Nearest(verb, known); near != "" {
		return near
	}
	return known[0]
}

// covers reports whether a pattern matches a known word, which has no character
// that path.Match treats as a separator.
func covers(pattern, word string) bool {
	if strings.ContainsAny(pattern, `[\`) {
		return false // they mean themselves, and no known word has them
	}
	ok, err := path.Match(pattern, word)
	return ok && err == nil
}

// scopeWord reports whether a word of an own scope, or a pattern over such words, is
// well formed.
func scopeWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.*?") == ""
}
