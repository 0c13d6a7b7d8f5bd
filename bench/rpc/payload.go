package main

import (
	"fmt"
	"strings"
)

// reviewSchema types both sides of the call: four validations a call.
const reviewSchema = `{
  "type": "object",
  "properties": {
    "prUrl": {"type": "string", "minLength": 1, "maxLength": 2048},
    "severity": {"enum": ["low", "med", "high"]},
    "findings": {"type": "array", "maxItems": 1000, "items": {
      "type": "object",
      "properties": {
        "file": {"type": "string", "minLength": 1},
        "line": {"type": "integer", "minimum": 1},
        "rule": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
        "message": {"type": "string"}
      },
      "required": ["file", "line", "rule", "message"],
      "additionalProperties": false}}
  },
  "required": ["prUrl", "severity", "findings"],
  "additionalProperties": false}`

// smallest is the size of the smallest payload that there is.
const smallest = 180

// payload is a JSON object of exactly size bytes: a list of findings, as a review would
// hold. The last message takes up the slack.
func payload(size int) []byte {
	const (
		before  = `{"prUrl":"https://example.com/acme/shop/pull/1742","severity":"high","findings":[`
		after   = `]}`
		finding = `{"file":"cart/total.go","line":%d,"rule":"no-float-money","message":"money as float64%s"}`
	)
	text := before
	for line := 1; ; line++ {
		next := fmt.Sprintf(finding, line*7, "")
		if line > 1 {
			next = "," + next
		}
		following := fmt.Sprintf(","+finding, (line+1)*7, "")
		if slack := size - len(text) - len(next) - len(after); slack < len(following) {
			slack = max(slack, 0)
			next = strings.Replace(next, "float64", "float64"+strings.Repeat(".", slack), 1)
			return []byte(text + next + after)
		}
		text += next
	}
}
