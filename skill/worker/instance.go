package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/agentd/agentd/rpc"
	"github.com/agentd/agentd/skill"
	"github.com/agentd/agentd/skill/internal/wire"
)

// A phase is where an instance is in its life.
type phase int

const (
	starting phase = iota // it has not answered initialize
	serving
	retiring // it takes no calls, and finishes those that it has
	stopping // it is about to end
)

// initializeID is the id of the first request. Those of calls and pings come after it.
const initializeID = 1

// An instance is one process of a worker. The goroutine of run owns all of it but what the
// comments give to others.
type instance struct {
	pool    *Pool
	program *skill.Resident
	born    time.Time

	// For the goroutines of calls and slots.
	cancelled chan *call    // calls whose context has ended
	retire    chan struct{} // asks it to take no more calls; has room for one
	ready     chan struct{} // closed when it serves
	replace   chan struct{} // closed when another one should take its place
	recycling bool          // it serves until that is there; set before replace is closed, as is resting
	resting   bool          // no other is needed before a call is
	over      chan struct{} // closed when it is gone, after fault was set
	fault     error         // why it was ended, or has; nil for one that ended as asked

	// For the goroutines that it has started.
	received chan received
	batches  chan []byte // nil when nothing is written any more
	written  chan written
	later    chan func()    // what nested calls have to say, for the owner to run
	helpers  sync.WaitGroup // reader, writer and nested calls

	phase    phase
	mayServe int // calls at once
	calls    map[uint64]*call
	requests map[string]context.CancelFunc // nested calls, by the worker's ids
	lastID   uint64
	served   int // calls taken
	waiting  int // cancelled calls that are not answered
	// strayUsage is set once it has reported a model's usage for a call that it does not serve.
	strayUsage bool

	out, spare []byte // what is to be written, and the memory of the last batch
	replies    int64  // bytes of out that the worker has asked for
	writing    bool   // a batch is with the writer
	queued     int64  // bytes that have ever been appended to out
	sent       int64  // bytes that have been written
	asked      bool   // it was asked to end: the input is closed when all is written

	due            time.Time // of the phase or of a ping; zero if nothing is
	ping           uint64    // the id of the last one
	pinged         bool      // it has not been answered
	heard          time.Time // when it last said something, or had a call
	busy           time.Time // when it last had a call, or began to serve
	memoryDue      time.Time
	mayRest        bool // it ends after IdleTimeout
	replaced       bool // replace is closed
	exited, silent bool // the process has ended, and the reader
}

// start starts an instance, which may end for lack of calls. It is not ready yet.
func (p *Pool) start(ctx context.Context, mayRest bool) (*instance, error) {
	program, err := p.cfg.Program.Start(ctx, p.cfg.Name, p.cfg.Capabilities[0].Name, wire.EnvWorker+"="+strconv.Itoa(wire.Version))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	in := &instance{
		pool: p, program: program, born: now, heard: now, due: now.Add(p.cfg.StartTimeout), memoryDue: now.Add(memoryInterval), mayRest: mayRest,
		cancelled: make(chan *call), retire: make(chan struct{}, 1), ready: make(chan struct{}), replace: make(chan struct{}), over: make(chan struct{}),
		received: make(chan received, 64), batches: make(chan []byte, 1), written: make(chan written, 1), later: make(chan func()),
		calls: map[uint64]*call{}, requests: map[string]context.CancelFunc{}, lastID: initializeID,
	}
	batches := in.batches // the owner's is set to nil
	in.helpers.Go(func() { read(program.Output, p.maxMessage(), in.received, in.over) })
	in.helpers.Go(func() { write(program.Input, batches, p.cfg.WriteTimeout, in.written) })
	in.send(func(b []byte) []byte { return appendRequest(b, initializeID, wire.Initialize, p.initializeParams()) })
	p.instances.Go(in.run)
	return in, nil
}

// run owns the instance until the process is gone and all of its calls have their outcome.
func (in *instance) run() {
	alarm := time.NewTimer(idle)
	defer alarm.Stop()
	var set time.Time // when the alarm goes off
	ended, kill := in.program.Ended(), in.pool.killed
	for !in.exited || !in.silent || in.writing {
		if in.phase == retiring && len(in.calls) == 0 {
			in.hangUp()
		}
		in.flush()
		if next := in.next(); !next.Equal(set) {
			set = next
			alarm.Reset(time.Until(next))
		}
		select {
		case c := <-in.queue():
			in.invoke(c)
		case r := <-in.received:
			in.take(r)
		case w := <-in.written:
			in.wrote(w)
		case c := <-in.cancelled:
			in.cancel(c)
		case f := <-in.later:
			f()
		case <-in.retire:
			in.stopTaking()
		case now := <-alarm.C:
			set = time.Time{}
			in.checkDue(now)
		case <-kill:
			kill = nil
			in.fail(errors.New("agentd stops"))
			in.program.Signal(syscall.SIGKILL)
		case <-ended:
			ended, in.exited = nil, true
			// What it has written is read, unless something keeps the pipe open.
			_ = in.program.Output.SetReadDeadline(time.Now().Add(time.Second))
		}
	}
	in.finish()
}

// queue is the pool's while another call can be served, and otherwise nil.
func (in *instance) queue() <-chan *call {
	if in.phase != serving || len(in.calls) >= in.mayServe {
		return nil
	}
	return in.pool.queue
}

// send appends messages to what is to be written.
func (in *instance) send(appended func([]byte) []byte) {
	before := len(in.out)
	in.out = appended(in.out)
	in.queued += int64(len(in.out) - before)
}

// reply appends messages that the worker has asked for. It is bounded how many of them wait
// until it reads: calls are by themselves.
func (in *instance) reply(appended func([]byte) []byte) {
	before := in.queued
	in.send(appended)
	if in.replies += in.queued - before; in.replies > maxReplies {
		in.fail(fmt.Errorf("it has left more than %d bytes unread that it had asked for", maxReplies))
	}
}

// emptied is the memory of messages that have been written, for others. After a burst it is
// let go.
func emptied(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b[:0]
}

// flush writes what has gathered, as far as the pipe takes it, and gives the rest to the
// writer. After the last message it closes the input.
func (in *instance) flush() {
	if in.writing || in.batches == nil {
		return
	}
	if len(in.out) > 0 && !in.exited {
		in.replies = 0
		n := writeNow(in.program.Input, in.out)
		in.sent += int64(n)
		if n < len(in.out) {
			in.writing = true
			in.batches <- in.out[n:]
			in.out, in.spare = in.spare, emptied(in.out)
			return
		}
		in.out = emptied(in.out)
	}
	if in.asked {
		in.endWriting()
		_ = in.program.Input.Close() // everything has been written
	}
}

// wrote notes how far the writer came.
func (in *instance) wrote(w written) {
	in.writing = false
	in.sent += int64(w.n)
	if w.err == nil {
		return
	}
	in.endWriting()
	if errors.Is(w.err, os.ErrDeadlineExceeded) {
		in.fail(fmt.Errorf("it has not read its standard input for %s", in.pool.cfg.WriteTimeout))
	} else {
		in.expectEnd()
	}
}

// endWriting lets the writer end.
func (in *instance) endWriting() {
	if in.batches != nil {
		close(in.batches)
		in.batches = nil
	}
}

// invoke sends a call to the worker.
func (in *instance) invoke(c *call) {
	c.instance = in
	close(c.taken)
	in.lastID++
	in.served++
	c.id = in.lastID
	in.calls[c.id] = c
	in.send(func(b []byte) []byte { return appendInvoke(b, c.id, c.inv, c.token) })
	c.end = in.queued - 1 // the line feed is not needed to begin it
	if most := in.pool.cfg.MaxCalls; most > 0 && in.served >= most {
		in.recycle(fmt.Errorf("it has served %d calls", in.served))
	}
}

// cancel asks the worker to end a call, and begins to wait for that.
func (in *instance) cancel(c *call) {
	if in.calls[c.id] != c || !c.grace.IsZero() {
		return
	}
	in.waiting++
	c.grace = time.Now().Add(in.pool.grace())
	why := "caller"
	if errors.Is(context.Cause(c.ctx), context.DeadlineExceeded) {
		why = "deadline"
	}
	params := wire.CancelParams{ID: json.RawMessage(strconv.FormatUint(c.id, 10)), Reason: why}
	in.send(func(b []byte) []byte { return appendRequest(b, 0, wire.Cancel, params) })
}

// complete ends a call.
func (in *instance) complete(c *call, o outcome) {
	delete(in.calls, c.id)
	if !c.grace.IsZero() {
		in.waiting--
	}
	in.heard = time.Now()
	in.busy = in.heard
	c.finish(o)
}

// stopTaking makes the instance take no more calls.
func (in *instance) stopTaking() {
	if in.phase < retiring {
		in.phase, in.due, in.pinged = retiring, time.Time{}, false
	}
}

// recycle asks for another instance in this one's place, which serves until that is there.
func (in *instance) recycle(why error) {
	if in.replaced {
		return
	}
	in.pool.log.Info("the worker is recycled", "pid", in.program.Pid(), "reason", why)
	in.pool.recycled.Add(1)
	in.recycling, in.replaced = true, true
	close(in.replace)
}

// rest ends the instance until calls need one.
func (in *instance) rest() {
	in.pool.log.Info("the worker ends for lack of calls", "pid", in.program.Pid(), "idle", in.pool.cfg.IdleTimeout)
	in.resting, in.replaced = true, true
	close(in.replace)
}

// fail ends the instance because of a fault: with SIGTERM, and soon with SIGKILL. Its calls
// have their outcome when it is gone: until then some code of theirs may run.
func (in *instance) fail(why error) {
	if in.fault != nil {
		return
	}
	in.fault = why
	in.phase, in.due = stopping, time.Now().Add(in.pool.grace())
	in.program.Signal(syscall.SIGTERM)
	in.askForReplacement()
}

func (in *instance) askForReplacement() {
	if !in.replaced {
		in.replaced = true
		close(in.replace)
	}
}

// expectEnd waits for the end of a program that has closed a pipe: its exit status will say
// more than that.
func (in *instance) expectEnd() {
	if in.phase < stopping {
		in.phase, in.due = stopping, time.Now().Add(in.pool.grace())
		in.askForReplacement()
	}
}

// hangUp asks an idle worker to end: it says so, and closes its input.
func (in *instance) hangUp() {
	in.asked = true
	in.phase, in.due = stopping, time.Now().Add(in.pool.grace())
	in.send(func(b []byte) []byte { return appendRequest(b, 0, wire.Shutdown, nil) })
}

// finish gives the calls that are left their outcome, and says that the instance is gone.
func (in *instance) finish() {
	in.endWriting()
	if in.fault == nil && !in.asked {
		in.fault = &endError{in.program}
	}
	// A call whose line was not read to its end has not begun.
	read := in.sent - int64(unread(in.program.Input))
	for _, c := range in.calls {
		switch {
		case c.ctx.Err() != nil:
			in.complete(c, outcome{err: stopped(c.ctx)})
		case c.end > read:
			in.complete(c, outcome{err: errNotBegun})
		default:
			in.complete(c, outcome{err: &rpc.SkillError{Message: "the skill's worker was lost while it served the call: " + publicly(in.fault), Lost: true, Err: in.fault}})
		}
	}
	for _, cancel := range in.requests {
		cancel()
	}
	in.askForReplacement()
	if in.fault != nil {
		in.pool.log.Error("the worker has ended", "pid", in.program.Pid(), "reason", in.fault, "served", in.served)
	}
	close(in.over)
	in.program.Close()
	in.helpers.Wait()
}

// An endError is the end of a program that nobody has asked for.
type endError struct{ of *skill.Resident }

func (e *endError) Error() string { return fmt.Sprintf("it has ended: %v", e.of.How()) }

// publicly is what a caller may learn of a fault: nothing that the program has said.
func publicly(fault error) string {
	if end := (*endError)(nil); errors.As(fault, &end) {
		return "it has ended: " + end.of.Status()
	}
	return fault.Error()
}
