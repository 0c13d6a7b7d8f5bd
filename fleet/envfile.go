package fleet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentd/agentd/internal/strictyaml"
)

// maxEnvFileBytes bounds a .env file.
const maxEnvFileBytes = 1 << 20

// A Variable is one of a .env file.
type Variable struct {
	Name, Value string
}

// EnvFileVariables returns the variables of a member's .env files that are there, in
// order: of two with one name the later counts. The error is a [*LoadError], or the
// operating system's.
//
// A file has lines NAME=value, also with `export` before them, blank lines, and
// comments that begin with #. A value may stand in single quotes, where everything
// means itself, or in double quotes, where \n, \r, \t, \", \$ and \\ are escapes; both
// may run over several lines. Without quotes a value ends at white space before a #,
// or at the end of its line. Nothing is expanded: secrets may contain $.
func (f *Fleet) EnvFileVariables(m *Member) ([]Variable, error) {
	var all []Variable
	for _, path := range m.EnvFiles() {
		variables, err := f.readEnvFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, variables...)
	}
	return all, nil
}

// readEnvFile reads one file.
func (f *Fleet) readEnvFile(path string) ([]Variable, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(file, maxEnvFileBytes+1))
	if err != nil {
		return nil, err
	}
	p := envParser{text: string(text), line: 1, name: path}
	if rel := f.rel(path); filepath.IsLocal(rel) {
		p.name = filepath.Join(f.shown, filepath.FromSlash(rel))
	}
	if len(text) > maxEnvFileBytes {
		p.fault(fmt.Sprintf("the file is larger than %d bytes", maxEnvFileBytes), "")
		return nil, &strictyaml.Error{Faults: p.faults}
	}
	variables := p.parse()
	if p.faults != nil {
		return nil, &strictyaml.Error{Faults: p.faults}
	}
	return variables, nil
}

// holdsNUL is a fault: no environment can carry such a value.
const holdsNUL = "the value holds a NUL byte"

// An envParser reads a .env file. No fault shows a value.
type envParser struct {
	text   string // what is left of it
	line   int
	name   string
	faults []Fault
}

func (p *envParser) fault(message, hint string) {
	p.faults = append(p.faults, Position{File: p.name, Line: p.line, Column: 1}.Fault(message, hint))
}

func (p *envParser) parse() []Variable {
	var all []Variable
	for p.text = strings.TrimPrefix(p.text, "\ufeff"); p.text != ""; {
		start := strings.TrimLeft(p.text, " \t\r")
		if start == "" || start[0] == '\n' || start[0] == '#' {
			p.nextLine()
			continue
		}
		line, _, _ := strings.Cut(start, "\n")
		name, rest, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if bare, found := strings.CutPrefix(name, "export"); found && strings.TrimLeft(bare, " \t") != bare {
			name = strings.TrimSpace(bare)
		}
		switch {
		case !ok:
			p.fault("expected NAME=value", "comments begin with #")
			p.nextLine()
			continue
		case !envName(name):
			p.fault("this is not the name of an environment variable", "letters, digits and _, no digit first")
			p.nextLine()
			continue
		}
		p.text = start[len(line)-len(rest):]
		if value, ok := p.value(); ok {
			all = append(all, Variable{Name: name, Value: value})
		}
	}
	return all
}

// nextLine skips the rest of a line.
func (p *envParser) nextLine() {
	_, p.text, _ = strings.Cut(p.text, "\n")
	p.line++
}

// value reads a value and the rest of its line.
func (p *envParser) value() (value string, ok bool) {
	text := strings.TrimLeft(p.text, " \t")
	if text == "" || text[0] != '\'' && text[0] != '"' {
		line, _, _ := strings.Cut(p.text, "\n")
		if strings.ContainsRune(line, 0) {
			p.fault(holdsNUL, "")
		}
		p.nextLine()
		return unquoted(line), true
	}
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			p.line += strings.Count(text[:i], "\n")
			p.text = text[i+1:]
			return b.String(), p.endLine()
		case c == 0:
			p.fault(holdsNUL, "")
			p.text = ""
			return "", false
		case c == '\\' && quote == '"' && i+1 < len(text):
			i++
			b.WriteString(unescaped(text[i]))
		default:
			b.WriteByte(c)
		}
	}
	p.fault("the quotes of the value are not closed", "")
	p.text = ""
	return "", false
}

// unquoted is a value without quotes: up to a comment, which white space precedes.
func unquoted(line string) string {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return strings.TrimSpace(line)
}

// unescaped is what a backslash and c mean. An escape that is none means itself.
func unescaped(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 't':
		return "\t"
	case '"', '\\', '$':
		return string(c)
	}
	return `\` + string(c)
}

// endLine skips the rest of a line, which may hold only a comment.
func (p *envParser) endLine() bool {
	line, _, _ := strings.Cut(p.text, "\n")
	if rest := strings.TrimSpace(line); rest != "" && rest[0] != '#' {
		p.fault("there is text behind the closing quote", "")
		p.nextLine()
		return false
	}
	p.nextLine()
	return true
}
