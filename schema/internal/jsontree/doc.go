// Package jsontree parses JSON into trees that keep the order of members and the text
// of each value. Only schemas are parsed, and values that the prover reasons about;
// payloads are judged as bytes.
package jsontree
