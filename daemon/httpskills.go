package daemon

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentd/agentd/daemon/health"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/netguard"
	"github.com/agentd/agentd/internal/refcount"
	"github.com/agentd/agentd/internal/secretref"
	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill/httpskill"
)

// httpInterval is how often a web service is tried that no call has reached meanwhile.
const httpInterval = 15 * time.Second

// httpSkills are the web services that run skills. A reload that changes nothing about one keeps
// its connections. The zero value is ready.
type httpSkills struct {
	open    refcount.Pool[*httpService] // by what they were opened with
	closing sync.WaitGroup
}

// close closes all, whoever uses them: no call does any more.
func (h *httpSkills) close() {
	_ = h.open.CloseAll() // it has nothing to say, and release may follow
	h.closing.Wait()
}

// An httpService is one web service, and whether it can be reached.
type httpService struct {
	*httpskill.Skill
	name    string
	board   *health.Board // its own: it may end before that of the agent, and have a successor of its name
	monitor *health.Monitor
	reached atomic.Int64 // when it was, in Unix nanoseconds
	first   sync.WaitGroup
	stop    context.CancelFunc
}

// openHTTPService opens a service, and begins to try whether it can be reached.
func (d *Daemon) openHTTPService(name string, cfg httpskill.Config) (*httpService, error) {
	s := &httpService{name: name, board: health.NewBoard(d.log)}
	cfg.Reached = s.note
	var err error
	if s.Skill, err = httpskill.New(cfg); err != nil {
		return nil, err
	}
	s.monitor = health.Watch(s.board, health.Watched{
		Describe: func(err error) health.Condition {
			return health.Condition{
				Kind: health.HTTPSkill, Subject: name, Code: "away", Effect: "calls of the skill " + name + " fail: its service cannot be reached",
				Cause: err.Error(), Remedy: "it is tried again by itself; see its http in agent.yaml: url, allowAddresses, tls",
			}
		},
		Check: s.check, Interval: httpInterval, Ended: func() {},
	})
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.first.Go(func() {
		if err := s.check(ctx, true); err != nil && ctx.Err() == nil {
			s.note(err)
		}
	})
	return s, nil
}

// note takes what a request has found out. That a service is there again is for the monitor to
// see: a connection that was made before may outlive the way to it.
func (s *httpService) note(err error) {
	if err == nil {
		s.reached.Store(time.Now().UnixNano())
		return
	}
	s.monitor.Fail(err)
}

// check tries to connect, unless a call has reached the service a while ago.
func (s *httpService) check(ctx context.Context, failing bool) error {
	if !failing && time.Since(time.Unix(0, s.reached.Load())) < httpInterval {
		return nil
	}
	return s.Reach(ctx)
}

// Close implements [io.Closer]. It may be called again.
func (s *httpService) Close() error {
	s.stop()
	s.first.Wait()
	s.monitor.Close()
	s.Skill.Close()
	return nil
}

// An httpUse is a service as long as a set of handlers has it.
type httpUse struct {
	from *httpSkills
	ref  *refcount.Ref[*httpService]
}

// release ends the use, without a wait for an attempt to connect that still runs.
func (u *httpUse) release() {
	u.from.closing.Go(func() { _ = u.ref.Release() }) // it has nothing to say
}

// httpService opens what runs a skill that is a web service. It is closed with the set of
// actions, after the last call that uses it.
func (d *Daemon) httpService(m *fleet.Member, s fleet.Skill, variables []fleet.Variable, set *actionSet) (rpc.Handler, error) {
	cfg, secrets, err := httpConfig(m, s.HTTP, lookup(variables))
	if err == nil {
		var key []byte
		if key, err = httpKey(s, m, secrets); err == nil {
			var ref *refcount.Ref[*httpService]
			ref, err = d.httpSkills.open.Use(string(key), func() (*httpService, error) { return d.openHTTPService(s.Name, cfg) })
			if err == nil {
				set.services = append(set.services, &httpUse{&d.httpSkills, ref})
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%d: the skill %s: %w", s.HTTP.Position.File, s.HTTP.Position.Line, s.Name, err)
	}
	return httpHandler{d, set, s.Name}, nil
}

// httpKey names all that a service was opened with, the contents of its files included: where it
// is the same, a reload keeps the connections. It stays in memory.
func httpKey(s fleet.Skill, m *fleet.Member, secrets []string) ([]byte, error) {
	of := *s.HTTP
	of.Position = fleet.Position{}
	return json.Marshal([]any{s.Name, m.Address, of, secrets})
}

// httpConfig is how a service is reached. An address that is written in its URL may be in any
// range. secrets is what was read besides the file.
func httpConfig(m *fleet.Member, h *fleet.HTTPSkill, getenv func(string) string) (cfg httpskill.Config, secrets []string, err error) {
	u, err := url.Parse(h.URL)
	if err != nil {
		return cfg, nil, fmt.Errorf("the URL cannot be read: %w", err)
	}
	guard := netguard.Config{Hosts: []string{u.Host}, AllowAddresses: slices.Clone(h.AllowAddresses), CAFile: h.TLS.CA}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		guard.AllowAddresses = append(guard.AllowAddresses, netip.PrefixFrom(addr, addr.BitLen()).String())
	}
	for _, c := range h.Credentials {
		guard.Credentials = append(guard.Credentials, netguard.CredentialConfig{Host: u.Host, Header: c.Header, Scheme: c.Scheme, Secret: c.SecretRef})
	}
	policy, err := guard.Policy(func(ref string) (string, error) {
		value, err := secretref.Resolve(ref, getenv)
		secrets = append(secrets, value)
		return value, err
	})
	if err != nil {
		return cfg, nil, err
	}
	policy.ServerName = h.TLS.ServerName
	for _, file := range []string{h.TLS.CA, h.TLS.Cert, h.TLS.Key} {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return cfg, nil, fmt.Errorf("tls: %w", err)
		}
		secrets = append(secrets, string(text))
	}
	if h.TLS.Cert != "" {
		cert, err := tls.LoadX509KeyPair(h.TLS.Cert, h.TLS.Key)
		if err != nil {
			return cfg, nil, fmt.Errorf("tls: the certificate %s and its key cannot be used: %w", h.TLS.Cert, err)
		}
		policy.Certificate = &cert
	}
	header := map[string]string{}
	for _, own := range h.Headers {
		header[own.Name] = own.Value
	}
	return httpskill.Config{
		URL: h.URL, Method: h.Method, Header: header, Policy: policy, Timeout: h.Timeout,
		MaxResponseBytes: int64(h.MaxResponseBytes), Agent: string(m.Address),
	}, secrets, nil
}

// An httpHandler is a skill that is a web service.
type httpHandler struct {
	d    *Daemon
	set  *actionSet // of the files that the skill stands in
	name string
}

// Handle implements [rpc.Handler].
func (h httpHandler) Handle(ctx context.Context, inv *rpc.Invocation) (json.RawMessage, error) {
	set, err := h.d.actionsOf(h.set)
	if err != nil {
		return nil, err
	}
	defer set.release()
	for _, use := range set.services {
		if use.ref.Value.name == h.name {
			return use.ref.Value.Handle(ctx, inv)
		}
	}
	return nil, &rpc.SkillError{Message: "the agent no longer has this skill"}
}

// httpTrouble lists the services that cannot be reached, by skill. Each logs it as it begins and
// ends.
func (d *Daemon) httpTrouble() (all []health.Condition) {
	set, ok := d.currentActions()
	if !ok {
		return nil
	}
	defer set.release()
	for _, use := range set.services {
		all = append(all, use.ref.Value.board.Active()...)
	}
	slices.SortFunc(all, func(a, b health.Condition) int { return strings.Compare(a.Subject, b.Subject) })
	return all
}
