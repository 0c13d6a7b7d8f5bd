package review

import (
	"math"
	"path"
	"regexp"
	"strings"
)

// A credential is a provider's format of secrets.
type credential struct {
	what string
	has  string // what every match holds; a cheap test before the expression
	re   *regexp.Regexp
	weak bool // also matches what tests make up
}

// credentials hold formats with a fixed prefix: what matches one is hardly
// ever anything else. The last is the exception.
var credentials = []credential{
	{"an AWS access key id", "IA", regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z2-7]{16}\b`), false},
	{"a GitHub token", "_", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,255}\b|\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b`), false},
	{"a GitLab token", "glpat-", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`), false},
	{"a Slack token", "xox", regexp.MustCompile(`\bxox[abeprs]-[0-9A-Za-z]{8,}-[0-9A-Za-z-]{8,}`), false},
	{"a Slack webhook", "hooks.slack.com/", regexp.MustCompile(`\bhooks\.slack\.com/services/T[0-9A-Z]{7,}/B[0-9A-Z]{7,}/[0-9A-Za-z]{20,}`), false},
	{"a Google API key", "AIza", regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`), false},
	{"a Stripe live key", "k_live_", regexp.MustCompile(`\b[rs]k_live_[0-9A-Za-z]{20,}\b`), false},
	{"an npm token", "npm_", regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`), false},
	{"a SendGrid key", "SG.", regexp.MustCompile(`\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`), false},
	{"a password in a URL", "://", regexp.MustCompile(`\b(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqps?|nats|https?)://[^\s:/@"'<>{}$]+:[^\s:/@"'<>{}$*]{8,}@[\w.-]+\.[a-z]{2,}`), true},
}

// A private key is its head (RFC 7468) and a body; the head alone is in every
// program that reads keys. Encrypted keys are not meant.
var (
	privateKeyHead = regexp.MustCompile(`-----BEGIN (?:RSA |EC |DSA |OPENSSH |PGP )?PRIVATE KEY(?: BLOCK)?-----`)
	base64Run      = regexp.MustCompile(`[A-Za-z0-9+/]{32,}|Proc-Type:|DEK-Info:`)
)

// leakedKey reads all added lines, tests and comments too: a key that was
// pushed is known, wherever it stood.
func leakedKey(_ *diffView, f *fileView, report func(int, string)) {
	const advice = "; revoke it, then load it from the secret store."
	for _, h := range f.hunks {
		for i, line := range h {
			if line.Op != Add {
				continue
			}
			if what := credentialIn(line.Text, f.test); what != "" {
				report(line.Number, "This looks like "+what+advice)
			}
			if privateKeyHead.MatchString(line.Text) && h.keyFollows(i) {
				report(line.Number, "This looks like a private key"+advice)
			}
		}
	}
}

// credentialIn names the first credential in a line, "" for none.
func credentialIn(text string, test bool) string {
	for _, c := range credentials {
		if c.weak && test || !strings.Contains(text, c.has) {
			continue
		}
		if match := c.re.FindString(text); match != "" && !placeholder(match) {
			return c.what
		}
	}
	return ""
}

// keyFollows tells whether a private key's body comes after its head in line
// i. Code that only looks for the head has none.
func (h hunkView) keyFollows(i int) bool {
	_, rest, _ := strings.Cut(h[i].Text, "-----BEGIN")
	if base64Run.MatchString(rest) {
		return true
	}
	for _, line := range h[i+1:] {
		if line.Op != Remove {
			return base64Run.MatchString(line.Text)
		}
	}
	return false
}

// The name may be part of a longer one (dbPassword, SESSION_SECRET); after it
// comes an assignment of a literal.
var (
	secretName = `(?i:(?:^|[^a-z])[a-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|token|(?:api|access|auth|secret|signing|encryption|private)[_-]?key|credentials?))`
	// In code the literal is quoted: name = "…", name: "…", "name" => '…', name := `…`.
	quotedSecret = regexp.MustCompile(secretName + "[\"'\\])]*\\s*(?::\\s*\\w+\\s*=|:=|=>|=|:)\\s*[\"'`]([^\"'`\\s]{12,200})[\"'`]")
	// In settings it need not be: NAME=…, name: ….
	bareSecret   = regexp.MustCompile(`^\s*(?:export\s+|-\s+)?` + secretName + `\s*[=:]\s*([^\s"'#]{12,200})\s*(?:#.*)?$`)
	settingsPath = regexp.MustCompile(`(?:^|/)\.env[^/]*$|\.(?:env|ini|properties|ya?ml|toml|cfg|conf|tfvars)$`)
)

// namesSecret is a cheap test before the expressions: a line without one of
// these words cannot match them.
func namesSecret(text string) bool {
	lower := strings.ToLower(text)
	for _, word := range []string{"passw", "passphrase", "secret", "token", "key", "credential"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// minSecretEntropy, in bits a character, parts random text from words.
const minSecretEntropy = 3.5

// hardcodedSecret spares tests, whose secrets protect nothing, and lock files,
// which are full of random text.
func hardcodedSecret(_ *diffView, f *fileView, report func(int, string)) {
	if f.test || f.generated {
		return
	}
	for _, line := range f.lines {
		if line.Op != Add || !namesSecret(line.Text) {
			continue
		}
		match := quotedSecret.FindStringSubmatch(line.Text)
		if match == nil && settingsPath.MatchString(f.path) {
			match = bareSecret.FindStringSubmatch(line.Text)
		}
		if match == nil || !looksRandom(match[1]) {
			continue
		}
		report(line.Number, "A literal that looks like a secret is assigned here; load it from the secret store, and revoke it if it is real.")
	}
}

// placeholderWord finds words and forms by which people mark what is to be
// filled in, and references to where the secret really is.
var placeholderWord = regexp.MustCompile(`(?i)example|placeholder|change[_-]?me|dummy|redacted|replace|insert|your[_-]|xxxx|\.\.\.|\*\*\*|<|\$\{|\{\{|%\(|^\$|^env:|^file:|^vault:|^secret:|^op://|^arn:|:(?:pass(?:word)?|secret|postgres|root|admin|test\w*)@`)

// placeholder tells whether a literal only stands for a secret.
func placeholder(text string) bool {
	if placeholderWord.MatchString(text) {
		return true
	}
	distinct := map[rune]bool{}
	for _, r := range text {
		distinct[r] = true
	}
	return len(distinct) < 6
}

// looksRandom tells random literals from words, names and calls: it wants much
// entropy, none of the punctuation of code, and letters and digits mixed more
// than they are in a name such as "billing-api-v2-key01".
func looksRandom(text string) bool {
	if placeholder(text) || strings.ContainsAny(text, "()[]{};,") {
		return false
	}
	mixes := 0
	for i := 1; i < len(text); i++ {
		if isLetter(text[i-1]) && isDigit(text[i]) || isDigit(text[i-1]) && isLetter(text[i]) {
			mixes++
		}
	}
	return mixes >= 4 && entropy(text) >= minSecretEntropy
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// entropy is the Shannon entropy of text in bits a byte.
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// Files that hold secrets by their name. Models of .env are meant to be seen.
var (
	keyFileName  = regexp.MustCompile(`^(?:id_(?:rsa|dsa|ecdsa|ed25519)|\.netrc|\.pgpass|\.htpasswd)$|\.(?:p12|pfx|jks|keystore|kdbx)$`)
	envFileName  = regexp.MustCompile(`^\.env(?:\.\w+)*$`)
	envFileModel = regexp.MustCompile(`\.(?:example|sample|template|dist|defaults?|test)$`)
)

// secretFile reports a file once, when it appears.
func secretFile(_ *diffView, f *fileView, report func(int, string)) {
	name := path.Base(f.path)
	env := envFileName.MatchString(name) && !envFileModel.MatchString(name)
	if (f.Change == Added || f.Change == Renamed) && !f.test && (env || keyFileName.MatchString(name)) {
		report(0, "A file that holds secrets is added; remove it from the branch's history, ignore it, and revoke what it held.")
	}
}
