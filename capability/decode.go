package capability

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/agentd/agentd/envelope"
	"github.com/agentd/agentd/internal/strictyaml"
	"github.com/agentd/agentd/schema"
)

// decodeFile turns a parsed file into a document. It reads the whole file
// before it fails, so that one load reports every fault.
func decodeFile(file *strictyaml.File, opts LoadOptions) (*Document, error) {
	d := &decoder{opts: opts}
	doc := d.document(file.Root())
	doc.Path = opts.Name
	if err := file.Err(); err != nil {
		return nil, err
	}
	if err := doc.computeDigests(); err != nil {
		return nil, fmt.Errorf("%s: %w", opts.Name, err)
	}
	return doc, nil
}

// maxWait bounds every duration in a file, so that none overflows. It is not
// a judgement of what is sensible: the reference system has no upper bound,
// and the caller clamps a capability's timeout.
const maxWait = 365 * 24 * time.Hour

// decoder holds the options that apply to every part of a file.
type decoder struct{ opts LoadOptions }

// document reads the file's top level.
func (d *decoder) document(v strictyaml.Value) *Document {
	o := v.Object()
	doc := &Document{Version: decodeVersion(o.Need("version")), byName: make(map[string]*Capability)}
	agent := o.Need("agent")
	doc.Agent = DecodeAddress(agent)
	if want := d.opts.Agent; want != "" && doc.Agent != "" && doc.Agent != want {
		agent.Fault(fmt.Sprintf("the file declares agent %q, expected %q", doc.Agent, want), "")
	}
	doc.Transports = DecodeTransports(o.Need("transports"), ServerSide)
	items := o.Need("capabilities").AtLeastOne("capability").List()
	for _, item := range items {
		doc.Capabilities = append(doc.Capabilities, d.capability(item))
	}
	o.Done()
	doc.index(items)
	return doc
}

// decodeVersion reads the version of a format that has only one version yet.
func decodeVersion(v strictyaml.Value) int {
	if n := v.Int(math.MinInt64, math.MaxInt64); n != 1 && v.Kind() == strictyaml.Number {
		v.Fault(fmt.Sprintf("version %d is not supported", n), "the version is 1")
	}
	return 1
}

// DecodeAddress reads an agent's address. It is exported for package fleet,
// whose files use the same form.
func DecodeAddress(v strictyaml.Value) envelope.Address {
	s := v.String()
	if v.Kind() != strictyaml.String {
		return ""
	}
	a, err := envelope.ParseAddress(s)
	if err != nil {
		v.Fault(err.Error(), "")
		return ""
	}
	return a
}

// index fills the lookup table and reports names that collide. Names that
// differ only in case collide too, because generated files are named after
// them and some file systems ignore case. items are the values that the
// capabilities were read from.
func (d *Document) index(items []strictyaml.Value) {
	folded := make(map[string]*Capability, len(d.Capabilities))
	for i, c := range d.Capabilities {
		if c.Name == "" {
			continue
		}
		at := items[i].Object().Get("name")
		first, dup := folded[strings.ToLower(c.Name)]
		switch {
		case !dup:
			folded[strings.ToLower(c.Name)] = c
		case first.Name == c.Name:
			at.Fault(fmt.Sprintf("duplicate capability name %q, first on line %d", c.Name, first.Position.Line), "rename one of them")
		default:
			at.Fault(fmt.Sprintf("the capability names %q and %q differ only in case", first.Name, c.Name), "rename one of them")
		}
		d.byName[c.Name] = c
	}
}

// capability reads one capability. Keys may also be spelt with underscores,
// as in the capability objects of the ARAL standard.
func (d *decoder) capability(v strictyaml.Value) *Capability {
	o := v.Object()
	c := &Capability{
		Name:        decodeName(o.Need("name")),
		Description: o.Get("description").String(),
		Timeout:     o.GetAny("timeoutMs", "timeout_ms").Millis(maxWait),
		Idempotent:  o.Get("idempotent").Bool(),
		Since:       decodeSince(o.Get("since")),
		Skill:       o.Get("skill").Text(),
		Position:    v.Position(),
	}
	if c.Skill == "" {
		c.Skill = c.Name
	}
	c.SchemaProfile = decodeProfile(o.GetAny("schemaProfile", "schema_profile"))
	input, output := o.GetAny("inputSchema", "input_schema"), o.GetAny("outputSchema", "output_schema")
	c.Input, c.Output = d.contract(c, "inputSchema", input), d.contract(c, "outputSchema", output)
	decodeCarried(o, c)
	result := o.Get("result")
	if result.Enum("json", string(ResultMCP)) == string(ResultMCP) {
		c.Result = ResultMCP
	}
	d.checkResult(c, result)
	asks := o.Get("asks")
	c.Asks = decodeAsks(asks)
	d.addAsks(c, asks, input.Present() && output.Present())
	o.Done()
	return c
}

// decodeSince reads the release that introduced a contract. Callers compare it with
// their minSchemaVersion, so that one which cannot be compared would be refused by all
// of those that ask.
func decodeSince(v strictyaml.Value) string {
	since := v.String()
	if _, ok := ParseSchemaVersion(since); !ok && since != "" {
		v.Fault(fmt.Sprintf("%q is no release", since), `up to four numbers, such as "1.2.0"`)
	}
	return since
}

// decodeName reads a capability's name. The grammar is narrow because names
// become parts of topics, of generated file names and of tool names.
func decodeName(v strictyaml.Value) string {
	name := v.String()
	switch {
	case v.Kind() != strictyaml.String:
	case len(name) > MaxNameBytes:
		v.Fault(fmt.Sprintf("the capability name is longer than %d bytes", MaxNameBytes), "")
	case !urlSafe(name):
		v.Fault("capability name must be URL-safe", "letters, digits, - and _, and a letter or a digit first")
	}
	return name
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
	return name != ""
}

// contract reads one side's schema; nil if there is none. A boolean schema is
// refused, because tools and generated clients need an object there.
func (d *decoder) contract(of *Capability, side string, v strictyaml.Value) *Contract {
	if !v.Present() {
		return nil
	}
	prefix := fmt.Sprintf("capability %q %s: ", of.Name, side)
	if v.Kind() != strictyaml.Map {
		v.Fault(prefix+"schema must be a JSON object", "leave the key out for loose JSON")
		return nil
	}
	source := v.AppendJSON(nil)
	if of.SchemaProfile == ProfileFull {
		source = withDialect(source)
	}
	return d.compile(of, side, v, source, false)
}

// compile makes the contract of a schema that v has. short says that v has the short form
// of it, see [DecodeAction].
func (d *decoder) compile(of *Capability, side string, v strictyaml.Value, source []byte, short bool) *Contract {
	prefix := fmt.Sprintf("capability %q %s: ", of.Name, side)
	c := &Contract{Source: source, at: v.Places(), short: short}
	if !d.opts.ValidateSchemas {
		return c
	}
	opts := of.CompileOptions()
	if d.opts.Schemas.share(c, opts) {
		return c
	}
	compiled, err := schema.CompileWith(c.Source, opts)
	if err != nil {
		c.faultSchema(v, prefix, err)
		return nil
	}
	c.Schema, c.Validator = compiled, compiled
	// The second opinion reads the compiled form, so it only sees schemas that
	// package schema accepts.
	if d.opts.SecondOpinion != nil {
		if faults := d.opts.SecondOpinion(compiled); len(faults) > 0 {
			c.faultBelow(v, prefix, faults)
			return c
		}
	}
	d.opts.Schemas.accept(c, opts)
	return c
}

// faultSchema records the faults of a schema that does not compile, each at
// its place in the file. v has the schema.
func (c *Contract) faultSchema(v strictyaml.Value, prefix string, err error) {
	var ce *schema.CompileError
	if !errors.As(err, &ce) {
		v.Fault(prefix+err.Error(), "")
		return
	}
	c.faultBelow(v, prefix, ce.Faults)
}

// faultBelow records faults with pointers that are relative to the schema, which v has.
func (c *Contract) faultBelow(v strictyaml.Value, prefix string, faults []schema.Fault) {
	for _, f := range faults {
		v.FaultBelow(c.pointer(f.Pointer), prefix+f.Message, f.Hint)
	}
}

// decodeCarried reads the keys that this package validates but does not act
// on; see the package comment.
func decodeCarried(o *strictyaml.Object, c *Capability) {
	c.Delivery = Delivery(o.Get("delivery").Enum(string(DeliveryDurable)))
	c.Progress = o.Get("progress").Bool()
	c.ID = o.Get("id").Text()
	c.Version = o.Get("version").Text()
	c.Category = o.Get("category").Text()
	c.Permissions = decodePermissions(o.Get("permissions"))
	c.RateLimit = DecodeRateLimit(o.GetAny("rateLimit", "rate_limit"))
	c.RetryPolicy = decodeRetryPolicy(o.GetAny("retryPolicy", "retry_policy"))
	c.Concurrency = int(o.Get("concurrency").Int(1, 1_000_000))
	c.Cost = decodeCost(o.Get("cost"))
	c.Callers = o.Get("callers").Texts()
}

// DecodeRateLimit reads {requests, period?, burst?, shared?}; nil if it is absent. The key
// window is a synonym of period.
func DecodeRateLimit(v strictyaml.Value) *RateLimit {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	defer o.Done()
	l := &RateLimit{
		Requests: int(o.Need("requests").Int(1, 1_000_000_000)),
		Period:   decodePeriod(o.GetAny("period", "window")),
		Burst:    int(o.Get("burst").Int(1, 1_000_000_000)),
		Shared:   o.Get("shared").Bool(),
	}
	if l.Burst == 0 {
		l.Burst = l.Requests
	}
	return l
}

// decodePeriod reads a duration such as 1m or 500ms. The default is one
// second.
func decodePeriod(v strictyaml.Value) time.Duration {
	text := v.Text()
	if text == "" {
		return time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		v.Fault("expected a duration", "such as 500ms, 10s, 1m or 1h")
	}
	return d
}

// decodeRetryPolicy reads a retry policy. The defaults are three attempts,
// with waits that start at one second, double each time and stop growing at
// ten. A longer first wait raises the default of the last one, so that
// setting one key alone is never a fault.
func decodeRetryPolicy(v strictyaml.Value) *RetryPolicy {
	if !v.Present() {
		return nil
	}
	o := v.Object()
	defer o.Done()
	p := &RetryPolicy{
		MaxAttempts:       int(o.GetAny("maxAttempts", "max_attempts").Int(1, 100)),
		BackoffMultiplier: o.GetAny("backoffMultiplier", "backoff_multiplier").Float(1, 100),
		InitialDelay:      o.GetAny("initialDelayMs", "initial_delay_ms").Millis(maxWait),
		MaxDelay:          o.GetAny("maxDelayMs", "max_delay_ms").Millis(maxWait),
		RetryOn:           decodeRetryOn(o.GetAny("retryOn", "retry_on")),
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 3
	}
	if p.BackoffMultiplier == 0 {
		p.BackoffMultiplier = 2
	}
	if p.InitialDelay == 0 {
		p.InitialDelay = time.Second
	}
	if p.MaxDelay == 0 {
		p.MaxDelay = max(10*time.Second, p.InitialDelay)
	}
	if p.MaxDelay < p.InitialDelay {
		v.Fault("maxDelayMs is shorter than initialDelayMs", "")
	}
	return p
}

// decodeRetryOn reads a list of failure classes; nil if there is none, which
// stands for all of them. An empty list is not nil: it stands for no class.
func decodeRetryOn(v strictyaml.Value) []string {
	if !v.Present() {
		return nil
	}
	classes := []string{}
	for _, item := range v.List() {
		classes = append(classes, item.Enum(RetryClasses()...))
	}
	return classes
}

// decodeCost reads a mapping from units to amounts.
func decodeCost(v strictyaml.Value) map[string]float64 {
	entries := v.Entries()
	if entries == nil {
		return nil
	}
	cost := make(map[string]float64, len(entries))
	for _, e := range entries {
		cost[e.Name] = e.Value.Float(0, math.MaxFloat64)
	}
	return cost
}
