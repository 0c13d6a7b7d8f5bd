package clitest

// Office is a fleet of two agents in one process: desk only calls, and clerk
// serves. The permission for clerk's capability sign asks a person first.
const Office = `
-- fleet.yaml --
version: 1
name: office
agents: [{id: clerk, path: ./clerk}, {id: desk, path: ./desk}]
environments: {default: {peersRef: ./rpc-peers.yaml}}
-- rpc-peers.yaml --
version: 1
peers:
  - agent: agent://clerk
    transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]
  - agent: agent://elsewhere
    transports: [{kind: memory, topics: {requests: agents.elsewhere.requests}}]
-- desk/agent.yaml --
name: desk
permissions:
  allow: ["RequestAgent:agent://clerk/*"]
  ask: ["RequestAgent:agent://clerk/sign"]
-- clerk/agent.yaml --
name: clerk
skills:
  echo: {process: {command: [cat]}}
-- clerk/capabilities.yaml --
version: 1
agent: agent://clerk
transports: [{kind: memory, topics: {requests: agents.clerk.requests}}]
capabilities:
  - {name: echo}
  - name: file
    description: Files a form.
    skill: echo
    timeoutMs: 5000
    since: "1.2"
    inputSchema: {type: object, properties: {form: {type: string}, copies: {type: integer}}, required: [form], additionalProperties: false}
    outputSchema: {type: object, properties: {form: {type: string}}}
  - {name: sign, skill: echo}
`
