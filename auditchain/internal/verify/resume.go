package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"golang.org/x/mod/sumdb/tlog"
)

// A State is how far a verification has come that was stopped: to the newest good checkpoint
// it has reached, without a fault. Whoever has it is trusted, and so is what keeps it: it
// says that the records up to Size were read and were those that were signed.
//
// A run that continues from it does not read them again. It proves that the log still has
// the history that was verified (the root of the tree over those records is the same, and
// every signed state goes with it) and checks the records after them. What it does not
// prove: that the content of a record before Size is still there as it was read. It looks
// at some of them at random.
type State struct {
	Origin   string `json:"origin"`
	FirstKey string `json:"firstKey"`
	// Size is the number of records verified, Root the root of the tree over them, Leaf the
	// hash of the last one and Time its time.
	Size int64     `json:"size"`
	Root tlog.Hash `json:"root"`
	Leaf tlog.Hash `json:"leaf"`
	Time int64     `json:"time"`
	// Given are the keys that the verification began with, Trusted those to which they have
	// led.
	Given   []string `json:"given"`
	Trusted []string `json:"trusted"`
	// Tenant is that whose records the report counts.
	Tenant string `json:"tenant,omitempty"`
	// Authority is the newest record that an erasure relied on.
	Authority int64 `json:"authority"`
	// Report has the counts, and At is when the state was reached.
	Report Report    `json:"report"`
	At     time.Time `json:"at"`
}

const (
	// sampleRuns is how often a continued run looks into the records that it does not read,
	// and sampleLength at how many neighbours. Where one of a hundred records was edited, it
	// finds one in 99 of 100 runs, even if they are neighbours.
	sampleRuns, sampleLength = 512, 8
)

// keepState remembers the state at a good checkpoint over all records so far.
func (v *verifier) keepState() {
	if v.options.Stopped == nil || v.chain.db == nil || !v.report.OK() || v.treeLost || v.options.FromCheckpoint {
		return
	}
	s := &State{
		Origin: v.report.Origin, FirstKey: v.db.Identity.FirstKey, Size: v.tree.Size(), Root: v.tree.Root(), Leaf: v.chain.previous, Time: v.chain.time,
		Given: v.given, Trusted: slices.Clone(v.trustedKeys), Tenant: v.options.Tenant, Authority: v.erasures.authority, Report: v.report, At: time.Now().UTC(),
	}
	// The lists go on growing.
	s.Report.Faults, s.Report.Keys = []Fault{}, slices.Clone(v.report.Keys)
	s.Report.Witnesses, s.Report.WitnessesUnpinned, s.Report.WitnessesSilent = nil, nil, nil // are asked again
	v.state = s
}

// resume continues from the state of the options, if the log has grown from it, and returns
// the number of the record to go on with. It adds a fault, and returns 0, if it has not.
func (v *verifier) resume(ctx context.Context, last int64) (first int64, err error) {
	s := v.options.Continue
	if s.Origin != v.report.Origin || s.FirstKey != v.db.Identity.FirstKey || s.Size < 1 || !slices.Equal(s.Given, v.given) {
		return 0, &auditerr.Error{Code: auditerr.CodeInvalid, Path: v.db.Path, Msg: "the verification to continue was one of another log, or with other keys",
			Hint: "verify the whole log"}
	}
	if s.Tenant != v.options.Tenant {
		return 0, &auditerr.Error{Code: auditerr.CodeInvalid, Path: v.db.Path,
			Msg:  fmt.Sprintf("the verification to continue counted the records of tenant %q, this one is to count those of tenant %q", s.Tenant, v.options.Tenant),
			Hint: "ask for the same tenant, or verify the whole log"}
	}
	began := "the verification that was stopped on " + s.At.Format(time.RFC3339)
	if s.Size > last {
		v.add(Fault{Class: Truncated, Seq: last + 1, Last: s.Size, Detail: fmt.Sprintf("the log ends at record %d, %s has read %d", last, began, s.Size)})
		return 0, nil
	}
	tree := v.db.Tree(ctx)
	frontier, err := tree.Frontier(s.Size)
	if err != nil {
		return 0, err
	}
	leaf, err := tree.Leaf(s.Size)
	if err != nil {
		return 0, err
	}
	if frontier.Root() != s.Root || leaf != s.Leaf {
		v.add(Fault{Class: Rewritten, Seq: 1, Last: s.Size, Detail: "the records are not those that " + began + " has read"})
		return 0, nil
	}
	if err := v.adopt(s); err != nil {
		return 0, err
	}
	if err := v.compareBefore(ctx, s); err != nil {
		return 0, err
	}
	v.tree = frontier
	return s.Size + 1, v.sample(ctx, s)
}

// adopt takes over what the stopped run has counted and learned.
func (v *verifier) adopt(s *State) error {
	for _, key := range s.Trusted {
		if err := errors.Join(v.trusted.Add(key), v.claimed.Add(key)); err != nil {
			return &auditerr.Error{Code: auditerr.CodeInvalid, Path: v.db.Path, Msg: "the state to continue from names a bad key", Err: err}
		}
	}
	v.trustedKeys, v.erasures.authority = slices.Clone(s.Trusted), s.Authority
	r := &v.report
	r.Records, r.Tenant, r.Pruned, r.Erased = s.Report.Records, s.Report.Tenant, s.Report.Pruned, s.Report.Erased
	r.Checkpoints, r.Signed, r.Keys = s.Report.Checkpoints, s.Report.Signed, append(r.Keys, s.Report.Keys...)
	r.Continued = s.Size
	return nil
}

// compareBefore compares the signed tree heads from outside the database that are smaller
// than the state with it: the tree must have grown from each of them.
func (v *verifier) compareBefore(ctx context.Context, s *State) error {
	for len(v.outside) > 0 && v.outside[0].parsed.Size < s.Size {
		h := v.outside[0]
		v.outside = v.outside[1:]
		signed, f := v.open(h)
		if f != nil {
			v.add(*f)
		}
		if signed == nil || signed.Size == 0 {
			continue
		}
		proof, err := tlog.ProveTree(s.Size, signed.Size, v.db.Tree(ctx))
		if err != nil {
			return v.db.Wrap("reading the Merkle tree", err)
		}
		if err := tlog.CheckTree(proof, s.Size, s.Root, signed.Size, signed.Root); err != nil {
			v.add(Fault{Class: h.conflict(Rewritten), Seq: 1, Last: signed.Size, Detail: h.from + " was signed over other records"})
			continue
		}
		v.report.Checkpoints++
		if h.witness != "" {
			v.confirm(h)
		}
	}
	return nil
}

// sample checks some of the records that are not read again.
func (v *verifier) sample(ctx context.Context, s *State) error {
	runs := min(sampleRuns, 1+s.Size/(4*sampleLength)) // a quarter of a small log is enough
	for range runs {
		first := 1 + rand.Int64N(s.Size) //nolint:gosec // an editor who foresees it gains nothing that docs/audit.md claims
		last := min(s.Size, first+sampleLength-1)
		previous, err := hashBefore(ctx, v.db, first)
		if err != nil {
			return err
		}
		c := chain{db: v.db, previous: previous, erasures: v.erasures}
		for f, err := range c.faults(ctx, first, last) {
			if err != nil {
				return err
			}
			v.add(f)
			return nil // one is enough to call for a whole verification
		}
		if err := v.included(ctx, s, last, c.previous); err != nil {
			return err
		}
	}
	return nil
}

// included checks that the verified tree has a record with a hash.
func (v *verifier) included(ctx context.Context, s *State, seq int64, hash tlog.Hash) error {
	proof, err := tlog.ProveRecord(s.Size, seq-1, v.db.Tree(ctx))
	if err != nil {
		return v.db.Wrap("reading the Merkle tree", err)
	}
	if tlog.CheckRecord(proof, s.Size, s.Root, seq-1, hash) != nil {
		v.add(Fault{Class: RecordAltered, Seq: seq, Detail: "its hash is not the one that was verified"})
	}
	return nil
}
