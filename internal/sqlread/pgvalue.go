package sqlread

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

func pgColumns(types *pgtype.Map, fields []pgconn.FieldDescription) []Column {
	columns := make([]Column, len(fields))
	for i, field := range fields {
		columns[i] = Column{Name: field.Name, Type: "other"}
		if t, ok := types.TypeForOID(field.DataTypeOID); ok {
			columns[i].Type = t.Name
		}
	}
	return columns
}

// appendPostgres writes a value that the server sent as text. Types that JSON has no
// form for stay text.
func appendPostgres(dst []byte, types *pgtype.Map, oid uint32, value []byte) []byte {
	if value == nil {
		return append(dst, "null"...)
	}
	text := string(value)
	switch oid {
	case pgtype.BoolOID:
		if text == "t" {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID:
		return appendNumber(dst, text)
	case pgtype.JSONOID, pgtype.JSONBOID:
		return appendJSON(dst, text)
	case pgtype.ByteaOID:
		if data, err := hex.DecodeString(strings.TrimPrefix(text, `\x`)); err == nil {
			return appendBytes(dst, data)
		}
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		// A time without a zone is written as one of UTC. Infinity, and years that RFC
		// 3339 has no digits for, stay as they are.
		if t, err := time.Parse("2006-01-02 15:04:05.999999999", strings.TrimSuffix(text, "+00")); err == nil {
			return appendTime(dst, t)
		}
	default:
		if t, ok := types.TypeForOID(oid); ok {
			if array, ok := t.Codec.(*pgtype.ArrayCodec); ok {
				return appendArray(dst, types, oid, array.ElementType.OID, text)
			}
		}
	}
	return appendText(dst, text)
}

// appendArray writes an array of one dimension as one of JSON. Others stay text.
func appendArray(dst []byte, types *pgtype.Map, oid, element uint32, text string) []byte {
	var elements []*string
	if !strings.HasPrefix(text, "{") || strings.HasPrefix(text, "{{") || types.Scan(oid, pgtype.TextFormatCode, []byte(text), &elements) != nil {
		return appendText(dst, text)
	}
	dst = append(dst, '[')
	for i, e := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		var value []byte
		if e != nil {
			value = []byte(*e)
		}
		dst = appendPostgres(dst, types, element, value)
	}
	return append(dst, ']')
}
