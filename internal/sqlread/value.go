package sqlread

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentd/agentd/internal/ijson"
)

func appendText(dst []byte, text string) []byte {
	return ijson.AppendQuoted(dst, strings.ToValidUTF8(text, "�"))
}

func appendBytes(dst, data []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, '"')
}

func appendTime(dst []byte, t time.Time) []byte {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return appendText(dst, t.UTC().String()) // RFC 3339 has four digits
	}
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}

// appendFloat writes the shortest number that reads back as f. What JSON has no numbers
// for is a string, by the name that Postgres and JavaScript give it.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// appendNumber writes digits as they are where they are a number of JSON.
func appendNumber(dst []byte, digits string) []byte {
	number := digits != "" && (digits[0] == '-' || digits[0] >= '0' && digits[0] <= '9')
	if number && ijson.Check([]byte(digits), 0) == nil {
		return append(dst, digits...)
	}
	return appendText(dst, digits)
}

// appendJSON writes a value that is JSON, or else its text.
func appendJSON(dst []byte, text string) []byte {
	if ijson.Check([]byte(text), ijson.DefaultMaxDepth/4) == nil {
		return append(dst, text...)
	}
	return appendText(dst, text)
}
