package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	// MaxBytes bounds a file's size.
	MaxBytes = 4 << 20
	// MaxDepth bounds how deep lists and mappings nest.
	MaxDepth = 128
	// MaxNodes bounds the values of a file after its aliases are expanded.
	MaxNodes = 200_000
	// maxNumber bounds the characters of one number.
	maxNumber = 4096
)

// A File is one parsed file and the faults found in it so far.
// It is not safe for concurrent use.
type File struct {
	name   string
	root   *node
	faults faults
	trace  *Key // of the root, or nil
}

// ReadFile parses the file at path. Faults name the file as name; "" means path.
//
// A file that cannot be read gives the operating system's error (errors.Is
// fs.ErrNotExist and the like work); one that is too big or not well formed
// gives an [*Error]. What is well formed but wrong, such as a duplicate key,
// comes with [File.Err].
func ReadFile(path, name string) (*File, error) {
	if name == "" {
		name = path
	}
	src, err := ReadSource(path, name)
	if err != nil {
		return nil, err
	}
	return Parse(name, src)
}

// ReadSource returns the text of a file for [Parse], which refuses a larger one than is
// read here. The error is the operating system's, or names the file as name.
func ReadSource(path, name string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	// Reading a folder would give an error that does not say what is wrong.
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory, not a file", name)
	}
	var src bytes.Buffer
	if err == nil && info.Mode().IsRegular() {
		src.Grow(int(min(info.Size(), MaxBytes)) + bytes.MinRead) // so that it need not grow
	}
	// One byte more than allowed, so that Parse sees that the file is too large.
	if _, err := src.ReadFrom(io.LimitReader(f, MaxBytes+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return src.Bytes(), nil
}

// Parse parses src: as JSON when name ends in .json, as YAML otherwise.
// The error is an [*Error].
func Parse(name string, src []byte) (*File, error) {
	p := &parser{File: &File{name: name}, src: src}
	if len(src) > MaxBytes {
		return nil, p.fatal(0, 0, fmt.Sprintf("the file is larger than %d bytes", MaxBytes), "")
	}
	var err error
	if strings.EqualFold(filepath.Ext(name), ".json") {
		err = p.json()
	} else {
		err = p.yaml()
	}
	if err != nil {
		return nil, err
	}
	return p.File, nil
}

// Root returns the file's value.
func (f *File) Root() Value {
	return Value{file: f, node: f.root, line: f.root.line, column: f.root.column, key: f.trace}
}

// Err is nil when no fault was recorded, and an [*Error] otherwise.
func (f *File) Err() error { return f.faults.err() }

// Fail records the faults of err, which belong to this file. An error that is
// no [*Error] is recorded against the file as a whole.
func (f *File) Fail(err error) {
	var e *Error
	if !errors.As(err, &e) {
		f.faults.add(Position{File: f.name}, err.Error(), "")
		return
	}
	for _, fault := range e.Faults {
		f.faults.add(fault.Position, fault.Message, fault.Hint)
	}
}

// parser turns source text into nodes.
type parser struct {
	*File
	src   []byte
	nodes int
	path  []string // member names and indexes from the root to the current node
}

// enter and leave maintain the path as a builder descends and returns.
func (p *parser) enter(name string) { p.path = append(p.path, name) }

func (p *parser) leave() { p.path = p.path[:len(p.path)-1] }

// addFault records a fault at the current node. The path becomes a pointer only
// here: building one for every node would cost the square of a hostile file's
// size.
func (p *parser) addFault(line, column int, message, hint string) {
	pointer := ""
	for _, name := range p.path {
		pointer = join(pointer, name)
	}
	p.faults.add(Position{File: p.name, Line: line, Column: column, Pointer: pointer}, message, hint)
}

// fatal returns the error for a file that cannot be read any further: all faults
// up to here, and this one.
func (p *parser) fatal(line, column int, message, hint string) error {
	p.faults.add(Position{File: p.name, Line: line, Column: column}, message, hint)
	return p.Err()
}

// count adds one node to the file's total. The error is for a file with too
// many nodes, or one that nests too deeply.
func (p *parser) count(line, column, depth int) error {
	p.nodes++
	if p.nodes > MaxNodes {
		return p.fatal(line, column, fmt.Sprintf("the file holds more than %d values once its aliases are expanded", MaxNodes), "")
	}
	if depth > MaxDepth {
		return p.fatal(line, column, fmt.Sprintf("values nest deeper than %d levels", MaxDepth), "")
	}
	return nil
}

// addMember adds a member to a mapping under construction. A key that the
// mapping already has is a fault; the first value is kept.
func (p *parser) addMember(m *node, seen map[string]int, k key, value *node) {
	if line, dup := seen[k.name]; dup {
		p.addFault(k.line, k.column, fmt.Sprintf("duplicate key %q, first on line %d", k.name, line), "keep one of them")
		return
	}
	seen[k.name] = k.line
	m.keys = append(m.keys, k)
	m.items = append(m.items, value)
}

// place converts a byte offset to a line and a column. It reads the file from
// the start, which is fine for the one fault that ends a parse.
func place(src []byte, offset int) (line, column int) {
	offset = min(max(offset, 0), len(src))
	before := src[:offset]
	line = 1
	start := 0
	for i, c := range before {
		if c == '\n' {
			line++
			start = i + 1
		}
	}
	return line, utf8.RuneCount(before[start:]) + 1
}

// join appends a member name to a JSON pointer.
func join(pointer, name string) string {
	if strings.ContainsAny(name, "~/") {
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return pointer + "/" + name
}
