package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/agentd/agentd/internal/strictyaml"
)

// A fileRef is a file that an environment names and that a load does not read.
type fileRef struct {
	key     string // of fleet.yaml
	written string // as there
	path    string // absolute
	member  string // "" for every member of the environment
	at      Position
}

// decodeRefs reads the paths of the files that agentd carries for other programs,
// and those of .env files.
func (d *declared) decodeRefs(o *strictyaml.Object, p paths) {
	for _, f := range []struct {
		key string
		to  *string
	}{{"secretsRef", &d.SecretsRef}, {"channelsRef", &d.ChannelsRef}} {
		v := o.Get(f.key)
		*f.to = p.carried(v)
		d.refer(f.key, "", v, *f.to)
	}
	d.EnvFiles = d.decodeEnvFiles(o.Get(envFilesKey), "", p)
}

const envFilesKey = "envFiles"

// decodeEnvFiles reads a list of paths. It returns nil for an absent list, which
// inherits, and an empty one for an empty list, which overrides.
func (d *declared) decodeEnvFiles(v strictyaml.Value, member string, p paths) []string {
	if v.Kind() == strictyaml.Absent {
		return nil
	}
	out := []string{}
	for _, item := range v.List() {
		path := p.carried(item)
		out = append(out, path)
		d.refer(envFilesKey, member, item, path)
	}
	return out
}

// refer notes that the environment names a file.
func (d *declared) refer(key, member string, v strictyaml.Value, path string) {
	if path != "" {
		d.refs = append(d.refs, fileRef{key: key, written: v.Text(), member: member, path: path, at: v.Position()})
	}
}

// inheritRefs returns the files that d names and those of its parent that d does not
// replace.
func inheritRefs(parent *Environment, d *declared) []fileRef {
	refs := slices.Clone(d.refs)
	for _, r := range parent.refs {
		_, overridden := d.Overrides[r.member]
		replaced := r.member == "" && (r.key == envFilesKey && d.EnvFiles != nil ||
			slices.ContainsFunc(d.refs, func(own fileRef) bool { return own.member == "" && own.key == r.key }))
		if !replaced && !overridden {
			refs = append(refs, r)
		}
	}
	return refs
}

// MissingFiles reports the files that the member's environment names and that are not
// there. Nothing of agentd fails without them, but what they hold is not in force.
func (m *Member) MissingFiles() Findings {
	var findings Findings
	own := m.Environment.Overrides[m.ID].EnvFiles != nil
	for _, r := range m.Environment.refs {
		switch {
		case r.member != "" && r.member != m.ID, r.member == "" && own && r.key == envFilesKey:
		case missing(r.path):
			findings = append(findings, r.finding())
		}
	}
	return findings
}

// missing reports whether there is certainly no file at a path.
func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (r fileRef) finding() Finding {
	return Finding{
		Severity: SeverityWarning, Code: RefMissing, Position: r.at,
		Message: fmt.Sprintf("%s names %s, and there is no such file", r.key, r.written),
	}
}

// lintRefs reports files that environments name and that are not there, each place
// once, and faults of .env files. A missing .env file is none: it is usual that only
// the machine that runs the agents has it.
func (f *Fleet) lintRefs() Findings {
	var findings Findings
	seen := make(map[Position]bool)
	for _, env := range f.Environments {
		for _, r := range env.refs {
			if seen[r.at] {
				continue
			}
			seen[r.at] = true
			switch {
			case r.key == envFilesKey:
				findings = append(findings, f.lintEnvFile(r)...)
			case missing(r.path):
				findings = append(findings, r.finding())
			}
		}
	}
	return findings
}

// lintEnvFile reports what is wrong with a .env file that can be read.
func (f *Fleet) lintEnvFile(r fileRef) Findings {
	_, err := f.readEnvFile(r.path)
	var faulty *LoadError
	if !errors.As(err, &faulty) {
		return nil
	}
	var findings Findings
	for _, fault := range faulty.Faults {
		findings = append(findings, Finding{Severity: SeverityError, Code: ConfigInvalid, Message: fault.Message, Hint: fault.Hint, Position: fault.Position})
	}
	return findings
}
