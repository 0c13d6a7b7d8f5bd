package sqlread

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentd/agentd/internal/failure"
	"github.com/agentd/agentd/internal/ijson"
)

// The limits where none are set.
const (
	DefaultMaxRows  = 1000
	DefaultMaxBytes = 1 << 20
	DefaultTimeout  = 10 * time.Second
)

const (
	maxQueryBytes = 64 << 10
	maxParams     = 1000
	maxConns      = 4 // of one database
)

// Limits bound one query.
type Limits struct {
	Rows    int
	Bytes   int64 // of the rows as JSON, and of one value in the database
	Timeout time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.Rows <= 0 {
		l.Rows = DefaultMaxRows
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultMaxBytes
	}
	if l.Timeout <= 0 {
		l.Timeout = DefaultTimeout
	}
	return l
}

// A Database answers queries. It is safe for concurrent use.
type Database interface {
	// Query runs one statement that returns rows. Errors are [failure.Error].
	Query(ctx context.Context, query string, params []json.RawMessage) (*Result, error)
	// Close closes the connections.
	Close() error
}

// A Column is one of a result. Names are unique within it: a second "a" is "a_2".
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as the database calls it, in lower case; empty for an expression of SQLite
}

// A Result is what a query found.
type Result struct {
	Columns []Column `json:"columns"`
	// Rows are objects with the columns in their order. Integers and decimals have all
	// digits, bytes are in base64, times as in RFC 3339.
	Rows []json.RawMessage `json:"rows"`
	// Truncated says that there are further rows, beyond a limit.
	Truncated bool `json:"truncated"`
}

// ResultSchema is the JSON Schema of a [Result].
const ResultSchema = `{
  "type": "object",
  "properties": {
    "columns": {"type": "array", "items": {
      "type": "object",
      "properties": {"name": {"type": "string"}, "type": {"type": "string"}},
      "required": ["name", "type"],
      "additionalProperties": false
    }},
    "rows": {"type": "array", "items": {"type": "object"}},
    "truncated": {"type": "boolean", "description": "there are further rows, beyond a limit"}
  },
  "required": ["columns", "rows", "truncated"],
  "additionalProperties": false
}`

// checkQuery refuses what a driver would read differently from a person: text after a
// NUL, which ends a string for both databases.
func checkQuery(query string, params []json.RawMessage) error {
	switch {
	case strings.TrimSpace(query) == "":
		return failure.Errorf(failure.InvalidArgument, "the query is empty")
	case len(query) > maxQueryBytes:
		return failure.Errorf(failure.InvalidArgument, "the query has more than %d bytes", maxQueryBytes)
	case !utf8.ValidString(query) || strings.ContainsRune(query, 0):
		return failure.Errorf(failure.InvalidArgument, "the query is not UTF-8, or has a NUL")
	case len(params) > maxParams:
		return failure.Errorf(failure.InvalidArgument, "there are more than %d parameters", maxParams)
	}
	return nil
}

// A param is a parameter as JSON has it: nil, a bool, a string, or a number as text.
type param any

func readParams(raw []json.RawMessage) ([]param, error) {
	params := make([]param, len(raw))
	for i, text := range raw {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&params[i]); err != nil || ijson.Check(text, ijson.DefaultMaxDepth) != nil {
			return nil, failure.Errorf(failure.InvalidArgument, "parameter %d is not valid JSON", i+1)
		}
		switch v := params[i].(type) {
		case nil, bool, json.Number:
		case string:
			if strings.ContainsRune(v, 0) {
				return nil, failure.Errorf(failure.InvalidArgument, "parameter %d has a NUL", i+1)
			}
		default:
			return nil, failure.Errorf(failure.InvalidArgument, "parameter %d is an array or object: a parameter is a string, number, boolean or null", i+1)
		}
	}
	return params, nil
}

// errOnlySelect is the answer to a statement that does something else than to read.
func errOnlySelect() *failure.Error {
	return failure.Errorf(failure.NotAllowed, "the query does more than to read: it has to be one SELECT (or VALUES, or WITH … SELECT) without side effects")
}

// collector gathers rows within the limits.
type collector struct {
	limits Limits
	bytes  int64
	names  [][]byte // the columns' names as JSON, with the colon
	result Result
}

func newCollector(columns []Column, limits Limits) *collector {
	c := &collector{limits: limits, result: Result{Columns: columns, Rows: []json.RawMessage{}}}
	taken := map[string]bool{}
	for i := range columns {
		name := strings.ToValidUTF8(columns[i].Name, "�")
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", columns[i].Name, n)
		}
		taken[name] = true
		columns[i].Name = name
		c.names = append(c.names, append(ijson.AppendQuoted(nil, name), ':'))
	}
	return c
}

// errFull ends a query whose limits are reached.
var errFull = errors.New("limit reached")

// add adds a row, whose values append writes as JSON. It returns errFull, and notes that
// rows are missing, where the row is beyond a limit.
func (c *collector) add(appendValue func(dst []byte, column int) ([]byte, error)) error {
	if len(c.result.Rows) == c.limits.Rows {
		c.result.Truncated = true
		return errFull
	}
	row := []byte{'{'}
	for i, name := range c.names {
		if i > 0 {
			row = append(row, ',')
		}
		row = append(row, name...)
		var err error
		if row, err = appendValue(row, i); err != nil {
			return err
		}
		if int64(len(row)) > c.limits.Bytes {
			break
		}
	}
	row = append(row, '}')
	if c.bytes += int64(len(row)); c.bytes > c.limits.Bytes {
		if len(c.result.Rows) == 0 {
			return failure.Errorf(failure.TooLarge, "the first row alone has more than %d bytes: select fewer columns, or parts of them", c.limits.Bytes)
		}
		c.result.Truncated = true
		return errFull
	}
	c.result.Rows = append(c.result.Rows, row)
	return nil
}
