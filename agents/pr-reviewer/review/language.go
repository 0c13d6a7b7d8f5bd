package review

import (
	"path"
	"regexp"
	"strings"
)

// A language is what the rules need to know to tell code from comments and text.
type language struct {
	name     string
	comments []string // markers of a comment that runs to the end of the line
	quotes   string   // bytes that open and close a string literal
	block    bool     // has /* … */; lines that begin with * belong to one
}

// languageOf tells the language by the file name. Nil means that the file is
// not known to be code: prose, data, or a language that no rule reads.
func languageOf(name string) *language {
	slashes, hash := []string{"//"}, []string{"#"}
	switch ext := path.Ext(name); ext {
	case ".go":
		return &language{"go", slashes, "\"'`", true}
	case ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte":
		return &language{"js", slashes, "\"'`", true}
	case ".py", ".pyi":
		return &language{"python", hash, "\"'", false}
	case ".rs":
		return &language{"rust", slashes, "\"", true} // ' also begins a lifetime
	case ".java", ".kt", ".kts", ".scala", ".groovy":
		return &language{"java", slashes, "\"'", true}
	case ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".swift":
		return &language{"c", slashes, "\"'", true}
	case ".php":
		return &language{"php", []string{"//", "#"}, "\"'", true}
	case ".rb", ".rake":
		return &language{"ruby", hash, "\"'", false}
	case ".sh", ".bash", ".zsh":
		return &language{"shell", hash, "\"'", false}
	case ".yaml", ".yml", ".toml", ".tf":
		return &language{"config", hash, "\"'", false}
	case ".sql":
		return &language{"sql", []string{"--"}, "'", true}
	}
	switch path.Base(name) {
	case "Dockerfile", "Makefile", "Jenkinsfile":
		return &language{"config", hash, "\"'", false}
	}
	return nil
}

// split parts a line into its code, with what string literals hold replaced by
// spaces, and its comment. Byte positions of the code stay as they were.
//
// A line is read on its own: that it stands inside of a block comment or a
// literal of many lines is known only if it begins with *.
func (l *language) split(text string) (code, comment string) {
	if trimmed := strings.TrimLeft(text, " \t"); l.block && blockComment.MatchString(trimmed) {
		return "", trimmed
	}
	blanked := []byte(text)
	for i := 0; i < len(text); i++ {
		if strings.IndexByte(l.quotes, text[i]) >= 0 {
			i = blankLiteral(blanked, i)
		} else if l.startsComment(text, i) {
			return string(blanked[:i]), text[i:]
		}
	}
	return string(blanked), ""
}

// blockComment matches lines that are all comment: /* …, * … and */.
var blockComment = regexp.MustCompile(`^(?:/\*|\*(?: |/|$))`)

// blankLiteral blanks the literal that opens at line[i], and returns the
// position of its end: the closing quote or that of the line.
func blankLiteral(line []byte, i int) int {
	quote := line[i]
	for i++; i < len(line) && line[i] != quote; i++ {
		if line[i] == '\\' && i+1 < len(line) {
			line[i] = ' '
			i++ // a quote behind a backslash closes nothing
		}
		line[i] = ' '
	}
	return i
}

// startsComment tells whether a comment starts at text[i], outside of strings.
func (l *language) startsComment(text string, i int) bool {
	rest := text[i:]
	if l.block && strings.HasPrefix(rest, "/*") {
		return true
	}
	for _, marker := range l.comments {
		if strings.HasPrefix(rest, marker) && (i == 0 || mayPrecede(text[i-1], marker)) {
			return true
		}
	}
	return false
}

// mayPrecede tells whether a comment may start behind c: "$#" and "${x#y}" of
// a shell are no comments, nor is the rest of "http://" in bare text.
func mayPrecede(c byte, marker string) bool {
	if marker == "//" {
		return c != ':'
	}
	return c == ' ' || c == '\t' || c == ';'
}

// What a path says about its file. The lists are of habits, not complete: a
// file that they miss is treated as ordinary code.
var (
	// testPath finds tests, and data for them.
	testPath = regexp.MustCompile(`(?:^|/)(?:tests?|__tests__|spec|testdata|fixtures|e2e)/` +
		`|_test\.\w+$|(?:^|/)test_[^/]*\.py$|(?:^|/)conftest\.py$|\.(?:test|spec)\.\w+$|(?:Test|Tests|IT)\.(?:java|kt|scala)$|_spec\.rb$`)
	// generatedPath finds what a program wrote or somebody else maintains.
	generatedPath = regexp.MustCompile(`(?:^|/)(?:vendor|node_modules|third_party|dist|generated)/` +
		`|\.min\.(?:js|css)$|\.(?:pb|gen)\.go$|_pb2\.py$|_generated\.\w+$|\.snap$|\.map$|\.svg$` +
		`|(?:^|/)(?:go\.sum|package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|poetry\.lock|uv\.lock|Gemfile\.lock|composer\.lock)$`)
	// generatedMark is the line by which a generated file says so itself.
	generatedMark = regexp.MustCompile(`(?i)\b(?:code generated .*do not edit|@generated)\b`)
	// programPath finds command line programs and scripts, whose output is print.
	programPath = regexp.MustCompile(`(?:^|/)(?:cmd|cli|bin|scripts?|tools?|examples?|hack|demo|benchmarks?)/` +
		`|(?:^|/)(?:main|cli|__main__|setup|manage|example\w*)\.\w+$`)
)
