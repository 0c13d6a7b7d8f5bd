package fleet

import (
	"fmt"
	"math"
	"net/url"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
)

// ManifestName is the file that makes a directory the root of a fleet.
const ManifestName = "fleet.yaml"

// DefaultEnvironment is the environment of members that name none. It exists
// implicitly if the file declares no environments.
const DefaultEnvironment = "default"

// decodeVersion reads the version of a format that has only one version yet.
func decodeVersion(v strictyaml.Value) int {
	if n := v.Int(math.MinInt64, math.MaxInt64); n != 1 && v.Kind() == strictyaml.Number {
		v.Fault(fmt.Sprintf("version %d is not supported", n), "the version is 1")
	}
	return 1
}

// manifest holds the content of fleet.yaml before the files that it names are
// read.
type manifest struct {
	fleet   *Fleet
	entries []entry
}

// entry is one member as fleet.yaml declares it.
type entry struct {
	member *Member
	path   strictyaml.Value
	env    strictyaml.Value
}

// decodeManifest reads fleet.yaml.
func decodeManifest(file *strictyaml.File, p paths) manifest {
	o := file.Root().Object()
	f := &Fleet{
		Root:        p.root,
		shown:       p.shown,
		Version:     decodeVersion(o.Need("version")),
		Name:        o.Need("name").Text(),
		Description: o.Get("description").String(),
		Runtime:     decodeRuntime(o.Get("runtime")),
		Deploy:      decodeDeploy(o.Get("deploy")),
		RPC:         decodeRPC(o.Get("rpc")),
		Broker:      decodeBroker(o.Get("broker")),
		Hosts:       decodeHosts(o.Get("hosts")),
		members:     make(map[string]*Member),
	}
	m := manifest{fleet: f}
	m.decodeEntries(o.Need("agents"), p)
	f.Environments = decodeEnvironments(o.Get("environments"), p)
	o.Done()
	return m
}

// decodeRuntime reads version ranges, which it does not interpret.
func decodeRuntime(v strictyaml.Value) Runtime {
	if !v.Present() {
		return Runtime{}
	}
	o := v.Object()
	defer o.Done()
	return Runtime{Declaragent: o.Get("declaragent").Text(), Bun: o.Get("bun").Text()}
}

// decodeRPC reads the block rpc.
func decodeRPC(v strictyaml.Value) RPC {
	if !v.Present() {
		return RPC{}
	}
	o := v.Object()
	defer o.Done()
	refuse(v, map[string]string{"auth": "write `rpc: {auth: {required: true}}`, or security.requireAuth, into agent.yaml of each agent"})
	o.PassOver("auth")
	out := RPC{StampFleetVersion: o.Get("stampFleetVersion").Bool()}
	// Text has reported a value that is empty or no string.
	least := o.Get("minFleetVersion")
	if text := least.Text(); text != "" {
		var err error
		if out.MinFleetVersion, err = envelope.ParseFleetVersion(text); err != nil {
			least.Fault(err.Error(), "")
		}
	}
	return out
}

// decodeEntries reads the members. It leaves out a member with an unusable
// id, because faults about its files could not name it.
func (m *manifest) decodeEntries(v strictyaml.Value, p paths) {
	first := make(map[string]int)
	for _, item := range v.List() {
		o := item.Object()
		id := o.Need("id")
		e := entry{
			member: &Member{
				ID:        id.Text(),
				Env:       o.Get("env").Text(),
				DeployTo:  decodePlacement(o.Get("deploy")),
				SessionDB: p.inside(o.Get("sessionDb"), p.root),
				AuditDB:   p.inside(o.Get("auditDb"), p.root),
				Position:  item.Position(),
			},
			path: o.Need("path"),
			env:  o.Get("env"),
		}
		o.Done()
		if e.member.Env == "" {
			e.member.Env = DefaultEnvironment
		}
		if e.member.ID == "" {
			continue
		}
		if err := envelope.CheckID(e.member.ID); err != nil {
			id.Fault(err.Error(), "")
			continue
		}
		if line, dup := first[e.member.ID]; dup {
			id.Fault(fmt.Sprintf("duplicate agent id %q, first on line %d", e.member.ID, line), "")
			continue
		}
		// After the checks, so that the line in a fault about a duplicate is that
		// of a usable member.
		first[e.member.ID] = id.Position().Line
		e.member.Address = envelope.AddressOf(e.member.ID)
		e.member.Dir = p.inside(e.path, p.root)
		m.entries = append(m.entries, e)
	}
}

// decodePlacement reads a member's deploy block; nil if there is none.
func decodePlacement(v strictyaml.Value) *Placement {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	defer o.Done()
	target := o.Need("target")
	return &Placement{
		Target:       target.Text(),
		MinInstances: int(o.Get("minInstances").Int(0, math.MaxInt32)),
		MaxInstances: int(o.Get("maxInstances").Int(1, math.MaxInt32)),
		Position:     target.Position(),
	}
}

// decodeDeploy reads how the fleet is rolled out.
func decodeDeploy(v strictyaml.Value) Deploy {
	if !v.Present() {
		return Deploy{}
	}
	o := v.Object()
	defer o.Done()
	d := Deploy{
		Strategy:          o.Get("strategy").Enum("rolling", "all-or-nothing", "per-agent", "canary"),
		RollbackOnFailure: o.Get("rollbackOnFailure").Bool(),
	}
	if gate := o.Get("healthGate"); gate.Present() {
		g := gate.Object()
		d.HealthTimeout = g.Get("timeoutMs").Millis(maxDuration)
		d.HealthProbe = g.Get("probe").Text()
		g.Done()
	}
	targets := o.Get("targets").Entries()
	d.Targets = make(map[string]string, len(targets))
	for _, t := range targets {
		// A target's other keys belong to the tool that deploys there.
		d.Targets[t.Name] = t.Value.Object().Need("kind").Text()
	}
	return d
}

// decodeHosts reads the remote control planes. Their names must differ,
// because commands select a host by name.
func decodeHosts(v strictyaml.Value) []Host {
	var hosts []Host
	first := make(map[string]int)
	for _, item := range v.List() {
		o := item.Object()
		name, address := o.Need("name"), o.Need("url")
		h := Host{Name: name.Text(), URL: address.Text(), Timeout: o.Get("timeoutMs").Millis(maxDuration)}
		if auth := o.Get("auth"); auth.Present() {
			a := auth.Object()
			h.Bearer = a.Need("bearer").Text()
			a.Done()
		}
		o.Done()
		if h.Timeout == 0 {
			h.Timeout = DefaultHostTimeout
		}
		checkHost(h, name, address)
		if line, dup := first[h.Name]; dup && h.Name != "" {
			name.Fault(fmt.Sprintf("duplicate host name %q, first on line %d", h.Name, line), "")
		} else {
			first[h.Name] = name.Position().Line
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// checkHost reports a name or an address that cannot be used, each at its
// place.
func checkHost(h Host, name, address strictyaml.Value) {
	if h.Name != "" && !urlSafe(h.Name) {
		name.Fault("host name must be URL-safe", "letters, digits, - and _, and a letter or a digit first")
	}
	if h.URL == "" {
		return
	}
	u, err := url.Parse(h.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		address.Fault("expected an absolute http or https URL", "")
	}
}

// urlSafe matches ^[A-Za-z0-9][A-Za-z0-9_-]*$.
func urlSafe(name string) bool {
	for i := range len(name) {
		c := name[i] | 0x20
		alnum := 'a' <= c && c <= 'z' || '0' <= name[i] && name[i] <= '9'
		if !alnum && (i == 0 || name[i] != '-' && name[i] != '_') {
			return false
		}
	}
	return true
}
