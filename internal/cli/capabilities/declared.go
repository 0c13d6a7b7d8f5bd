package capabilities

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentd/agentd/capability"
)

// declared is what a capabilities file says about a capability besides what it
// publishes to callers. Its names are those of the file.
type declared struct {
	File        string              `json:"file"`
	Skill       string              `json:"skill"`
	Delivery    capability.Delivery `json:"delivery,omitempty"`
	Callers     []string            `json:"callers,omitempty"`
	Concurrency int                 `json:"concurrency,omitempty"`
	RateLimit   *rateLimit          `json:"rateLimit,omitempty"`
	RetryPolicy *retryPolicy        `json:"retryPolicy,omitempty"`
	Cost        map[string]float64  `json:"cost,omitempty"`
}

type rateLimit struct {
	Requests int    `json:"requests"`
	Period   string `json:"period"`
	Burst    int    `json:"burst"`
	Shared   bool   `json:"shared"`
}

type retryPolicy struct {
	MaxAttempts       int      `json:"maxAttempts"`
	BackoffMultiplier float64  `json:"backoffMultiplier"`
	InitialDelayMs    int64    `json:"initialDelayMs"`
	MaxDelayMs        int64    `json:"maxDelayMs"`
	RetryOn           []string `json:"retryOn"`
}

func declaredOf(doc *capability.Document, c *capability.Capability) declared {
	d := declared{File: doc.Path, Skill: c.Skill, Delivery: c.Delivery, Callers: c.Callers, Concurrency: c.Concurrency, Cost: c.Cost}
	if l := c.RateLimit; l != nil {
		d.RateLimit = &rateLimit{l.Requests, l.Period.String(), l.Burst, l.Shared}
	}
	if p := c.RetryPolicy; p != nil {
		d.RetryPolicy = &retryPolicy{p.MaxAttempts, p.BackoffMultiplier, p.InitialDelay.Milliseconds(), p.MaxDelay.Milliseconds(), p.RetryOn}
		if p.RetryOn == nil { // which stands for all of them
			d.RetryPolicy.RetryOn = capability.RetryClasses()
		}
	}
	return d
}

// rows are the fields of a table, with "" for those that are not declared.
func (d *declared) rows() [][]string {
	rows := [][]string{{"delivery", string(d.Delivery)}, {"callers", strings.Join(d.Callers, ", ")}}
	if d.Concurrency > 0 {
		rows = append(rows, []string{"concurrency", strconv.Itoa(d.Concurrency)})
	}
	if l := d.RateLimit; l != nil {
		text := fmt.Sprintf("%d per %s, bursts of %d", l.Requests, l.Period, l.Burst)
		if l.Shared {
			text += ", shared by the replicas"
		}
		rows = append(rows, []string{"rateLimit", text})
	}
	if p := d.RetryPolicy; p != nil {
		rows = append(rows, []string{"retryPolicy", fmt.Sprintf("%d attempts, %d to %d ms apart (×%g), on %s",
			p.MaxAttempts, p.InitialDelayMs, p.MaxDelayMs, p.BackoffMultiplier, strings.Join(p.RetryOn, ", "))})
	}
	var cost []string
	for _, unit := range slices.Sorted(maps.Keys(d.Cost)) {
		cost = append(cost, fmt.Sprintf("%s %g", unit, d.Cost[unit]))
	}
	return append(rows, []string{"cost", strings.Join(cost, ", ")})
}
