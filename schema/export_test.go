package schema

import (
	"context"

	"github.com/agentd/agentd/internal/ijson"
	"github.com/agentd/agentd/schema/internal/verdict"
)

// Thoroughly is Check on a payload that breaks the schema, by a reporter that goes into
// every part of it, without a question whether something is wrong there.
func (s *Schema) Thoroughly(doc []byte) (report Report) {
	s.validator.Explain(context.Background(), doc, func(r *verdict.Run) {
		p := &reporter{
			run: r, data: doc, limits: s.limits, limit: s.limits.MaxViolations + MaxOmitted,
			fault: -1, thorough: true,
		}
		p.value(s.form.Root, ijson.SkipSpace(doc, 0))
		report = p.report()
	})
	return report
}
