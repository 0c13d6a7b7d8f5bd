package codegen_test

import (
	"fmt"
	"strings"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/codegen"
)

func Example() {
	doc, err := capability.Parse("capabilities.yaml", []byte(`
version: 1
agent: agent://greeter
transports: [{kind: memory, topics: {requests: agents.greeter.requests}}]
capabilities:
  - name: greet
    inputSchema:
      type: object
      properties: {name: {type: string}, tone: {enum: [warm, formal]}}
      required: [name]
      additionalProperties: false
`), capability.LoadOptions{ValidateSchemas: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	api, err := codegen.NewAPI(doc)
	if err != nil {
		fmt.Println(err)
		return
	}
	lang, err := codegen.Find("ts")
	if err != nil {
		fmt.Println(err)
		return
	}
	file := lang.Generate(api)
	fmt.Println(file.Path)
	_, types, _ := strings.Cut(string(file.Content), "export type ")
	request, _, _ := strings.Cut(types, "\n\n")
	fmt.Println("export type " + request)
	// Output:
	// greeter.ts
	// export type GreetRequest = {
	//   name: string;
	//   tone?: "warm" | "formal";
	// };
}
