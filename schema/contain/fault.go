package contain

import (
	"github.com/agentd/agentd/internal/truncate"
	"github.com/agentd/agentd/schema"
)

// fault logs that two engines of this package contradict each other. The
// answer in progress becomes undecided, with [ReasonInternal], so that a fault
// of one engine cannot become a wrong proof, and cannot pass for a limit of
// what is decidable either.
func (p *prover) fault(what string, attrs ...any) {
	if p.budget.Logger == nil {
		return
	}
	p.budget.Logger.ErrorContext(p.ctx, "schema: internal fault: "+what, attrs...)
}

// unverified returns the reason why a value that the search has found does not
// count: the validators do not judge it as the search does. If they cannot
// read it, it exceeds their limits. Otherwise one of the two is wrong.
func (p *prover) unverified(value []byte, verdicts ...schema.Verdict) Reason {
	for _, v := range verdicts {
		if v == schema.Malformed || v == schema.Exceeded {
			return ReasonWitness
		}
	}
	const most = 1000
	p.fault("the validator contradicts the prover", "value", truncate.String(string(value), most), "verdicts", verdicts)
	return ReasonInternal
}
