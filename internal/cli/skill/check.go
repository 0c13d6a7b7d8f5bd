package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/internal/output"
	"github.com/agentd/agentd/skill/worker/conformance"
)

// A Check is one `agentd skill check`.
type Check struct {
	// Command is the worker.
	Command []string
	// Capabilities is the path of a capabilities file, or "".
	Capabilities string
	// Calls are <capability>=<payload>.
	Calls []string
	// StartTimeout, Timeout and Grace are those of [conformance.Config].
	StartTimeout, Timeout, Grace time.Duration
}

// Execute checks a worker and prints what it has found. A check that fails is a finding.
func Execute(ctx context.Context, env *cli.Env, c Check) error {
	cfg := conformance.Config{Command: c.Command, StartTimeout: c.StartTimeout, Timeout: c.Timeout, Grace: c.Grace, Stderr: env.Stderr}
	if min(c.StartTimeout, c.Timeout, c.Grace) <= 0 {
		return cli.Usage("--start-timeout, --timeout and --grace: must be positive")
	}
	contracts, err := c.offer(&cfg)
	if err != nil {
		return err
	}
	for _, text := range c.Calls {
		name, payload, ok := strings.Cut(text, "=")
		const depth = 512
		if !ok || ijson.Check([]byte(payload), depth) != nil {
			return cli.Usage("--call: must be <capability>=<payload in JSON>, not %q", text)
		}
		call := conformance.Call{Capability: name, Payload: json.RawMessage(payload)}
		if of := contracts[name]; of != nil {
			call.Judge = func(answer json.RawMessage) error { return judge(of.Output, answer) }
			if err := judge(of.Input, call.Payload); err != nil {
				return cli.Usage("--call: the payload of %s is not valid: %v", name, err)
			}
		} else {
			cfg.Capabilities = append(cfg.Capabilities, conformance.Capability{Name: name})
		}
		cfg.Calls = append(cfg.Calls, call)
	}
	var all []conformance.Check
	passed, err := conformance.Run(ctx, cfg, func(check conformance.Check) {
		all = append(all, check)
		if env.Format == output.Table {
			printCheck(env, check)
		}
	})
	if err != nil {
		return err
	}
	if env.Format != output.Table {
		if err := env.WriteJSON(all); err != nil {
			return err
		}
	}
	if !passed {
		return cli.Finding(nil)
	}
	return nil
}

// offer reads the capabilities that the worker is to serve besides those of the check.
func (c Check) offer(cfg *conformance.Config) (map[string]*capability.Capability, error) {
	contracts := map[string]*capability.Capability{}
	if c.Capabilities == "" {
		return contracts, nil
	}
	if _, err := os.Stat(c.Capabilities); err != nil {
		return nil, cli.Usage("--capabilities: %v", err)
	}
	doc, err := capability.Load(c.Capabilities)
	if err != nil {
		return nil, cli.Finding(err)
	}
	for _, of := range doc.Capabilities {
		contracts[of.Name] = of
		offered := conformance.Capability{Name: of.Name, Description: of.Description, TimeoutMs: of.Timeout.Milliseconds(), Progress: of.Progress, Idempotent: of.Idempotent}
		if of.Input != nil {
			offered.InputSchema = of.Input.Source
		}
		if of.Output != nil {
			offered.OutputSchema = of.Output.Source
		}
		cfg.Capabilities = append(cfg.Capabilities, offered)
	}
	return contracts, nil
}

// judge reports how a value violates a contract.
func judge(contract *capability.Contract, value json.RawMessage) error {
	if report := contract.Check(value); len(report.Violations) > 0 {
		v := report.Violations[0]
		return fmt.Errorf("it violates its schema at %q: %s", v.Path, v.Message)
	}
	return nil
}

func printCheck(env *cli.Env, c conformance.Check) {
	mark := map[conformance.Outcome]string{conformance.Passed: "ok     ", conformance.Failed: "FAILED ", conformance.Skipped: "skipped"}[c.Outcome]
	fmt.Fprintf(env.Stdout, "%s  %s\n", mark, c.Name)
	if c.Detail != "" {
		fmt.Fprintf(env.Stdout, "         %s\n", output.PrintableText(c.Detail))
	}
}
