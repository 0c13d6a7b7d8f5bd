package review

import (
	"fmt"
	"regexp"
	"strings"
)

// A Rule is one thing that a reviewer objects to.
type Rule struct {
	// ID is the stable name, in lower case with dashes.
	ID string
	// Severity is that of all findings of the rule.
	Severity Severity
	// Doc says in one sentence what the rule finds.
	Doc string

	check func(d *diffView, f *fileView, report func(line int, message string))
}

// Rules returns the rules by falling severity.
func Rules() []Rule {
	return []Rule{
		{"leaked-key", High, "A credential in the format of a known provider, or a private key.", leakedKey},
		{"hardcoded-secret", High, "A literal that looks random is assigned to a name like password or apiKey.", hardcodedSecret},
		{"secret-file", High, "A file that exists to hold secrets is added: .env, id_rsa, a key store.", secretFile},
		{"conflict-marker", High, "A merge conflict was committed unresolved.", conflictMarker},
		{"debugger-left", High, "A breakpoint that would halt the program in production.", debuggerLeft},
		{"tls-verify-off", High, "The check of TLS certificates is switched off outside of tests.", tlsVerifyOff},
		{"sql-concat", Med, "An SQL statement is built from text and variables.", sqlConcat},
		{"dynamic-eval", Med, "Text is run as code.", dynamicEval},
		{"removed-test", Med, "Tests are removed and not replaced.", removedTest},
		{"disabled-test", Med, "A test is skipped for good, or the rest of its suite is by an only.", disabledTest},
		{"binary-file", Med, "A program, library or archive is committed, which nobody can review.", binaryFile},
		{"debug-print", Med, "Output for debugging is left in library code.", debugPrint},
		{"todo-no-owner", Low, "A TODO or FIXME names neither a person nor an issue.", todoNoOwner},
		{"huge-hunk", Low, "A hunk is too long to be reviewed with care.", hugeHunk},
	}
}

// conflictMarker reads every kind of file: conflicts do not spare prose.
func conflictMarker(_ *diffView, f *fileView, report func(int, string)) {
	open := false
	for _, line := range f.lines {
		if line.Op != Add {
			continue
		}
		// "=======" alone underlines a heading in prose; the other two suffice.
		switch begins, ends := strings.HasPrefix(line.Text, "<<<<<<< "), strings.HasPrefix(line.Text, ">>>>>>> "); {
		case begins:
			open = true
			report(line.Number, "An unresolved merge conflict begins here; resolve it and commit the result.")
		case ends && !open:
			report(line.Number, "The end of an unresolved merge conflict is left here; remove it.")
		case ends:
			open = false
		}
	}
}

// A pattern is what one language's code looks like when a rule objects to it.
// It meets the code of one line, literals blanked and comments gone.
type pattern struct {
	lang string // of language.name
	re   *regexp.Regexp
	what string // begins the message, if the rule's messages differ by pattern
}

// matchAny returns the first pattern of the language that code matches, or nil.
func matchAny(patterns []pattern, lang *language, code string) *pattern {
	for i, p := range patterns {
		if p.lang == lang.name && p.re.MatchString(code) {
			return &patterns[i]
		}
	}
	return nil
}

// matchPatterns reports the added lines of code that one of the patterns
// matches, once each.
func matchPatterns(f *fileView, patterns []pattern, advice string, report func(int, string)) {
	for line := range f.addedCode {
		if p := matchAny(patterns, f.lang, line.code); p != nil {
			report(line.Number, p.what+advice)
		}
	}
}

// debuggers halt a program until somebody attaches to it.
var debuggers = []pattern{
	{"js", regexp.MustCompile(`^\s*debugger\s*;?\s*$`), "A debugger statement"},
	{"python", regexp.MustCompile(`\b(?:pdb|ipdb|pudb)\.set_trace\(|^\s*breakpoint\(\)`), "A breakpoint"},
	{"ruby", regexp.MustCompile(`\bbinding\.(?:pry|irb)\b|^\s*byebug\s*$`), "A breakpoint"},
	{"go", regexp.MustCompile(`\bruntime\.Breakpoint\(\)`), "A breakpoint"},
	{"php", regexp.MustCompile(`\bxdebug_break\(`), "A breakpoint"},
}

func debuggerLeft(_ *diffView, f *fileView, report func(int, string)) {
	matchPatterns(f, debuggers, " is left in the code; remove it.", report)
}

// debugPrints write where nobody looks in production. Errors that go to the
// console (console.error, print to stderr) are left alone: they may be meant.
var debugPrints = []pattern{
	{"js", regexp.MustCompile(`\bconsole\.(?:log|debug|trace|dir|table)\(`), "Console output"},
	{"go", regexp.MustCompile(`\bfmt\.Print(?:f|ln)?\(|^\s*print(?:ln)?\(|\bspew\.Dump\(`), "A print to standard output"},
	{"python", regexp.MustCompile(`^\s*p?print\((?:[^=]|(?:sep|end|flush)=)*$`), "A print to standard output"}, // not with file=
	{"rust", regexp.MustCompile(`\bdbg!\(`), "A dbg! call"},
	{"java", regexp.MustCompile(`\bSystem\.(?:out|err)\.print|\.printStackTrace\(\)`), "A print to the console"},
	{"php", regexp.MustCompile(`\b(?:var_dump|print_r|dd)\(`), "A dump of a variable"},
	{"ruby", regexp.MustCompile(`^\s*pp? [^=]`), "A dump of a variable"},
}

// debugPrint spares programs: printing is what a command line tool is for.
func debugPrint(_ *diffView, f *fileView, report func(int, string)) {
	if programPath.MatchString(f.path) {
		return
	}
	for _, line := range f.lines {
		if line.Op != Remove && strings.TrimSpace(line.code) == "package main" {
			return
		}
	}
	matchPatterns(f, debugPrints, " is left in library code; remove it or use the logger.", report)
}

// tlsSwitches are the literal ways to accept any certificate; a value that
// comes from settings is the operator's decision.
var tlsSwitches = []pattern{
	{"go", regexp.MustCompile(`\bInsecureSkipVerify\s*[:=]\s*true\b`), ""},
	{"python", regexp.MustCompile(`(?:requests|httpx|[Ss]ession|[Cc]lient)[\w.]*\(.*\bverify\s*=\s*False\b|[Ss]ession\.verify\s*=\s*False\b` +
		`|\b_create_unverified_context\(\)|\b(?:verify_mode|cert_reqs)\s*=\s*(?:ssl\.)?CERT_NONE\s*(?:[,)]|$)|\.check_hostname\s*=\s*False\b`), ""},
	{"js", regexp.MustCompile(`\brejectUnauthorized\s*:\s*false\b|\bNODE_TLS_REJECT_UNAUTHORIZED\s*=`), ""},
	{"ruby", regexp.MustCompile(`\bVERIFY_NONE\b`), ""},
	{"php", regexp.MustCompile(`\bCURLOPT_SSL_VERIFY(?:PEER|HOST)\s*(?:,|=>)\s*(?:false|0)\b`), ""},
	{"java", regexp.MustCompile(`\b(?:NoopHostnameVerifier|ALLOW_ALL_HOSTNAME_VERIFIER|TrustAllStrategy)\b`), ""},
	{"rust", regexp.MustCompile(`\bdanger_accept_invalid_(?:certs|hostnames)\(\s*true\s*\)`), ""},
	{"shell", regexp.MustCompile(`\bcurl\b.*\s(?:-k|--insecure)(?:\s|$)|\bwget\b.*\s--no-check-certificate\b|\bhttp\.sslVerify[ =]false\b`), ""},
}

func tlsVerifyOff(_ *diffView, f *fileView, report func(int, string)) {
	matchPatterns(f, tlsSwitches, "TLS certificates are not verified here; trust the peer's CA instead.", report)
}

// evals run text. Methods named eval (a model's, a page's) and functions that
// evaluate literals only are something else.
var evals = []pattern{
	{"js", regexp.MustCompile(`(?:^|[^.\w$])eval\(\s*[^)\s]|\bnew Function\(`), ""},
	{"python", regexp.MustCompile(`(?:^\s*|[=(\[{,:+]\s*|\b(?:return|if|not|and|or|in|await|yield)\s+)(?:eval|exec)\(\s*[^)\s]`), ""},
	{"php", regexp.MustCompile(`(?:^|[^>:\w])eval\(`), ""},
	{"ruby", regexp.MustCompile(`(?:^|[^.\w])eval[( ]`), ""},
}

func dynamicEval(_ *diffView, f *fileView, report func(int, string)) {
	matchPatterns(f, evals, "Text is run as code here; use data and a parser for it instead.", report)
}

// sqlHead begins a statement; "Select a file from …" is prose.
const sqlHead = `(?:SELECT\b[^"]{1,200}\bFROM\b|INSERT\s+INTO\b|UPDATE\b[^"]{1,200}\bSET\b|DELETE\s+FROM\b` +
	`|select\b[^"]{1,200}\bfrom\b|insert\s+into\b|update\b[^"]{1,200}\bset\b|delete\s+from\b)`

// sqlStatements match a statement that goes on with a variable. Upper-case names after a + are constants, and a tagged template (sql`…`)
// passes its values as parameters: neither is meant.
var sqlStatements = []*regexp.Regexp{
	regexp.MustCompile(`"\s*` + sqlHead + `[^"]*"\s*(?:\+|%)\s*\(?\s*[a-z_$][\w$]*`),
	regexp.MustCompile(`'\s*` + strings.ReplaceAll(sqlHead, `"`, `'`) + `[^']*'\s*(?:\+|%|\.)\s*\(?\s*[a-z_$][\w$]*`),
	regexp.MustCompile(`(?:Sprintf|String\.format|\.formatted)\(\s*["` + "`" + `]\s*` + sqlHead + `[^"]*%[svqd]`),
	regexp.MustCompile(`\b[fF]["']{1,3}\s*` + sqlHead + `[^{]*\{[^{]`),
	regexp.MustCompile("(?:^|[^\\w)])`\\s*" + strings.ReplaceAll(sqlHead, `"`, "`") + "[^`]*\\$\\{"),
}

// namesStatement is a cheap test before sqlStatements.
func namesStatement(text string) bool {
	for _, word := range []string{"SELECT", "INSERT", "UPDATE", "DELETE", "select", "insert", "update", "delete"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// sqlConcat reads whole lines without their comment, for the statement is in a
// literal.
func sqlConcat(_ *diffView, f *fileView, report func(int, string)) {
	for line := range f.addedCode {
		if !namesStatement(line.Text) {
			continue
		}
		text := strings.TrimSuffix(line.Text, line.comment)
		for _, re := range sqlStatements {
			if re.MatchString(text) {
				report(line.Number, "An SQL statement is put together from text and a variable; pass the value as a parameter.")
				break
			}
		}
	}
}

var (
	todo = regexp.MustCompile(`\b(?:TODO|FIXME)\b`)
	// An owner is TODO(name), TODO(#12), TODO @name, TODO name:, or an issue or address anywhere behind.
	todoOwner = regexp.MustCompile(`\b(?:TODO|FIXME)(?:\([^)\s][^)]*\)|:?\s+@\w|\s+[a-z][\w.-]*:)` +
		`|(?:TODO|FIXME).*(?:#\d+|\b[A-Z][A-Z0-9]+-\d+|https?://)`)
)

// todoNoOwner reads comments only, but those of tests too.
func todoNoOwner(_ *diffView, f *fileView, report func(int, string)) {
	if f.lang == nil || f.generated {
		return
	}
	for _, line := range f.lines {
		if line.Op == Add && todo.MatchString(line.comment) && !todoOwner.MatchString(line.comment) {
			report(line.Number, "A TODO without an owner; name a person or an issue, as in TODO(name) or TODO(#123).")
		}
	}
}

// hugeHunkLines is the number of changed lines from which a hunk is huge.
// Reviewers find markedly less beyond two to four hundred lines.
const hugeHunkLines = 300

// hugeHunk judges code; data, generated code and deleted files are not read
// line by line.
func hugeHunk(_ *diffView, f *fileView, report func(int, string)) {
	if f.lang == nil || f.generated || f.Change == Deleted || strings.Contains(f.path, "testdata/") {
		return
	}
	for i, h := range f.hunks {
		changed := 0
		for _, line := range h {
			if line.Op != Context {
				changed++
			}
		}
		if changed >= hugeHunkLines {
			report(f.Hunks[i].NewStart, fmt.Sprintf("A hunk changes %d lines at once; split the change so that each part can be reviewed.", changed))
		}
	}
}

// unreviewable are programs, libraries, archives and images of disks. Pictures
// and fonts are not source either, but the real thing.
var unreviewable = regexp.MustCompile(`(?i)\.(?:exe|dll|so|dylib|a|o|obj|lib|class|jar|war|pyc|wasm|zip|tar|t?gz|tgz|bz2|xz|7z|rar|iso|dmg|msi|deb|rpm)$`)

// binaryFile goes by the name: a diff of a binary says no more.
func binaryFile(_ *diffView, f *fileView, report func(int, string)) {
	if f.Binary && f.Change != Deleted && unreviewable.MatchString(f.path) {
		report(0, "A program, library or archive is committed; build or fetch it instead, so that its source can be reviewed.")
	}
}
