package agentd_test

import (
	"bytes"
	"fmt"

	"github.com/agentd/agentd"
)

func ExampleKits() {
	text, err := agentd.Kits.ReadFile("skill/sdk/doc.go")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(bytes.HasSuffix(text, []byte("package sdk\n")))
	// Output: true
}
