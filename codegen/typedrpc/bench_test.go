package typedrpc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentd/agentd/codegen/testdata/golden/reviewer/prreviewer"
	"github.com/agentd/agentd/codegen/typed"
)

// plain is what one would write by hand, without any of the checks.
type plain struct {
	Verdict  string `json:"verdict"`
	Summary  string `json:"summary"`
	Findings []struct {
		File     string `json:"file"`
		Line     int    `json:"line"`
		Severity string `json:"severity"`
		Message  string `json:"message"`
		Rule     string `json:"rule"`
	} `json:"findings"`
}

// The codec of generated types beside encoding/json of plain structs.
func BenchmarkCodec(b *testing.B) {
	finding := `{"file":"src/cart.ts","line":10,"severity":"med","message":"Console output is left.","rule":"debug-print"}`
	data := []byte(fmt.Sprintf(`{"verdict":"comment","summary":"10 findings.","findings":[%s]}`, strings.Repeat(finding+",", 9)+finding))
	run := func(name string, once func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := once(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("decode/typed", func() error {
		var v prreviewer.ReviewPrResponse
		return typed.Unmarshal(data, &v)
	})
	run("decode/encoding-json", func() error {
		var v plain
		return json.Unmarshal(data, &v)
	})
	var strict prreviewer.ReviewPrResponse
	var loose plain
	if err := errors.Join(typed.Unmarshal(data, &strict), json.Unmarshal(data, &loose)); err != nil {
		b.Fatal(err)
	}
	run("encode/typed", func() error {
		_, err := typed.Marshal(strict)
		return err
	})
	run("encode/encoding-json", func() error {
		_, err := json.Marshal(loose)
		return err
	})
}
