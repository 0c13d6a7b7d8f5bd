package proof_test

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/proof"
)

// A proof file is checked with the log's public keys alone.
func ExampleProof_Verify() {
	file, err := os.ReadFile("../testdata/v1/record-5.proof.json")
	if err != nil {
		log.Fatal(err)
	}
	public, err := os.ReadFile("../testdata/v1/audit.sqlite.pub")
	if err != nil {
		log.Fatal(err)
	}
	keys, err := checkpoint.NewKeys(strings.Fields(string(public))...)
	if err != nil {
		log.Fatal(err)
	}
	p, err := proof.Parse(file)
	if err != nil {
		log.Fatal(err)
	}
	result, err := p.Verify(keys)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("record %d, a %s, is one of %d\n", p.Record.Seq, p.Record.Kind, result.Size)
	// Output: record 5, a capability_schema_violation, is one of 12
}
