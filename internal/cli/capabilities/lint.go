package capabilities

import (
	"github.com/agentd/agentd/capability/lint"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/output"
)

// Lint checks a capabilities file by the rules of a profile. The error is a
// finding when one of them is broken at severity error.
func Lint(env *cli.Env, file, profile string, opts lint.Options) error {
	p, err := lint.ParseProfile(profile)
	if err != nil {
		return cli.Usage("--profile: %s", err)
	}
	opts.SecondOpinion = cli.FileOptions().SecondOpinion
	findings, err := lint.File(file, p, opts)
	if err != nil {
		return err
	}
	if env.Format == output.Table {
		err = findings.WriteText(env.Stdout)
	} else {
		if findings == nil {
			findings = lint.Findings{} // an empty array, never null
		}
		err = env.WriteJSON(struct {
			OK       bool          `json:"ok"`
			Profile  lint.Profile  `json:"profile"`
			Findings lint.Findings `json:"findings"`
		}{!findings.Failed(), p, findings})
	}
	if err == nil && findings.Failed() {
		err = cli.Finding(nil)
	}
	return err
}
