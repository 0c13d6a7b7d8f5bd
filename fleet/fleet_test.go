package fleet_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/capability/gojsonschema"
	"github.com/agentd/agentd/fleet"
)

// files is a fleet on disk: contents by slash-separated path.
type files map[string]string

// with is the same fleet with some files changed; "" removes one.
func (f files) with(changes files) files {
	out := files{}
	for name, text := range f {
		out[name] = text
	}
	for name, text := range changes {
		out[name] = text
		if text == "" {
			delete(out, name)
		}
	}
	return out
}

// root puts the fleet into a new directory.
func (f files) root(t *testing.T) string {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range f {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, tree); err != nil {
		t.Fatal(err)
	}
	return dir
}

// write is root, and goes there, so that the root is "." and faults print
// short paths.
func (f files) write(t *testing.T) {
	t.Helper()
	t.Chdir(f.root(t))
}

// plugged are the options of a program that has every validator.
func plugged() fleet.LoadOptions {
	return fleet.LoadOptions{Engines: []capability.Engine{gojsonschema.Engine{}}, SecondOpinion: gojsonschema.NewSecondOpinion()}
}

// load writes and loads a fleet that must load.
func (f files) load(t *testing.T) *fleet.Fleet {
	t.Helper()
	f.write(t)
	out, err := fleet.Load(".", plugged())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func capabilitiesOf(id, capability string) string {
	return "version: 1\nagent: agent://" + id + "\ntransports:\n  - kind: memory\n    topics: {requests: agents." + id + ".requests}\ncapabilities:\n  - name: " + capability + "\n    inputSchema: {type: object}\n"
}

// starter is the reference system's two-agent fleet, in its own words as far
// as they are facts of the format.
func starter() files {
	return files{
		"fleet.yaml": `version: 1
name: fleet-starter
description: >-
  Two agents.

runtime:
  declaragent: "^1.2.0"
  bun: ">=1.1"

agents:
  - id: concierge
    path: ./agents/concierge
    env: shared
  - id: pr-reviewer
    path: ./agents/pr-reviewer
    env: shared
    deploy:
      target: cloud-run-reviewer

environments:
  shared:
    peersRef: ./rpc-peers.yaml
    envFiles:
      - ./.env

rpc:
  stampFleetVersion: false
  # minFleetVersion: v1.2.0-cut

deploy:
  strategy: rolling
  rollbackOnFailure: true
  healthGate:
    timeoutMs: 120000
    probe: /healthz
  targets:
    cloud-run-reviewer:
      kind: gcp-cloud-run
      region: us-central1
`,
		"rpc-peers.yaml": `version: 1
peers:
  - agent: agent://pr-reviewer
    transports:
      - kind: memory
        topics:
          requests: agents.pr-reviewer.requests
`,
		"agents/concierge/agent.yaml": `name: concierge
model: claude-haiku-4-5
temperature: 0.3
maxTokens: 1024
subagentDepthCap: 1
systemPrompt: |
  You route requests.
skills:
  - skills/delegate.md
tools:
  defaults:
    - RequestAgent
event-sources:
  - ./event-sources.yaml
mcp: {supervised: all}
audit: {export: {kind: datadog, apiKey: "env:K"}}
controlPlane: {auth: {enabled: false}}
rpc: {auth: {enabled: false}}
`,
		"agents/pr-reviewer/agent.yaml": "name: pr-reviewer\nmodel: claude-sonnet-4-6\nsystemPrompt: x\nskills:\n  - skills/review-pr.md\n",
		"agents/pr-reviewer/capabilities.yaml": `version: 1
agent: agent://pr-reviewer
transports:
  - kind: memory
    topics:
      requests: agents.pr-reviewer.requests
      responses: agents.pr-reviewer.responses
capabilities:
  - name: review-pr
    description: "Review a GitHub pull request."
    timeoutMs: 60000
    idempotent: true
    since: "1.1.0"
    inputSchema:
      type: object
      properties:
        prUrl: {type: string}
      required: [prUrl]
`,
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
