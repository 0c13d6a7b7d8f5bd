package rpctest

import (
	"errors"
	"testing"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/identity"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/rpc/callee"
	"github.com/agentd/agentd/rpc/caller"
)

// A Decision is an [rpc.Authorizer] that always decides the same.
type Decision policy.Decision

// Decide implements [rpc.Authorizer].
func (d Decision) Decide(envelope.Address, string) policy.Decision { return policy.Decision(d) }

// Allow permits every call.
func Allow() Decision { return Decision{Allowed: true, Reason: policy.AllowRule} }

// Deny refuses every call, by a rule of line 4 of agent.yaml.
func Deny() Decision {
	return Decision{Reason: policy.DenyRule, Rule: policy.Rule{
		Effect: policy.Deny, Pattern: "RequestAgent:**", Position: capability.Position{File: "agent.yaml", Line: 4},
	}}
}

// Only is an [rpc.Authorizer] and an [rpc.Limiter] that let one agent pass.
type Only envelope.Address

// Decide implements [rpc.Authorizer].
func (o Only) Decide(peer envelope.Address, _ string) policy.Decision {
	return policy.Decision{Allowed: peer == envelope.Address(o), Reason: policy.CallerNotListed}
}

// Take implements [rpc.Limiter].
func (o Only) Take(peer envelope.Address, _ string, _ *capability.Capability, _ time.Time) policy.Quota {
	return policy.Quota{Allowed: peer == envelope.Address(o), Limit: 1, Report: true}
}

// Tenant is an [rpc.TenantGuard] that serves one tenant.
type Tenant string

// Decide implements [rpc.TenantGuard].
func (own Tenant) Decide(_ envelope.Address, _ bool, tenant string) error {
	if tenant == string(own) {
		return nil
	}
	return errors.New("another tenant is served")
}

// Exhausted is a limiter whose tokens of review-pr are used up for peer.
func Exhausted(doc *capability.Document, peer envelope.Address) *policy.RateLimiter {
	l := policy.NewRateLimiter(0)
	c, _ := doc.Lookup("review-pr")
	l.Take(peer, "", c, time.Now())
	return l
}

// Keyring is that of self, which shares one secret with each of others and demands
// proofs from all.
func Keyring(t testing.TB, self envelope.Address, others ...envelope.Address) *identity.Keyring {
	t.Helper()
	peers := map[envelope.Address]identity.Peer{}
	for _, other := range others {
		peers[other] = identity.Peer{Secrets: []identity.Secret{{ID: "k", Key: []byte("a secret of the agents")}}}
	}
	k, err := identity.NewKeyring(identity.Options{Self: self, Require: true, Peers: peers})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Proven gives both ends their keyrings, and returns where refusals are kept.
func Proven(t testing.TB) (Option, *Refusals) {
	kept := &Refusals{}
	return func(cc *caller.Config, ic *callee.Config) {
		cc.Identity, ic.Identity = Keyring(t, Concierge, Reviewer), Keyring(t, Reviewer, Concierge)
		cc.Records.Refusals, ic.Records.Refusals = kept, kept
	}, kept
}
