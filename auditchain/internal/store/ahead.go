package store

import (
	"runtime"
	"sync"

	"golang.org/x/mod/sumdb/tlog"
)

// To read the bodies of packs and compute their digests is about as much work as all else that a
// verification does, and the packs do not depend on each other. So where several follow, each is
// unpacked in a goroutine of its own while the records before it are used.

// An unpacking is a pack and the records that were asked for of it.
type unpacking struct {
	pack    pack
	u       unpacker
	records []Record
	digests []tlog.Hash
	err     error
	memory  []byte
	working sync.WaitGroup
}

// read unpacks the records from first to last.
func (s *unpacking) read(first, last int64) {
	s.records, s.err = nil, nil
	if s.pack.last < first && s.pack.last >= s.pack.first {
		return
	}
	records, err := s.u.read(&s.pack)
	if err != nil {
		s.err = &PackError{First: s.pack.first, Last: s.pack.last, Err: err}
		return
	}
	from, to := 0, len(records)
	for from < to && records[from].Seq < first {
		from++
	}
	for from < to && records[to-1].Seq > last {
		to--
	}
	s.records = records[from:to]
	if len(s.digests) < len(s.records) {
		s.digests = make([]tlog.Hash, max(maxPacked, len(s.records))) // a forged pack may have more
	}
	for i := range s.records {
		r := &s.records[i]
		s.digests[i] = s.u.digest(r)
		r.Digest = s.digests[i][:]
	}
}

// yield yields what read has read. It returns false if the consumer has stopped.
func (s *unpacking) yield(yield func(*Record, error) bool) bool {
	if s.err != nil {
		return yield(nil, s.err)
	}
	for i := range s.records {
		if !yield(&s.records[i], nil) {
			return false
		}
	}
	return true
}

// keep makes the pack independent of the row that it was scanned from.
func (s *unpacking) keep() {
	p := &s.pack
	s.memory = s.memory[:0]
	fields := [...]*[]byte{&p.tenants, &p.kinds, &p.hashes, &p.salts, &p.bodies}
	for _, field := range fields {
		s.memory = append(s.memory, *field...)
	}
	at := 0
	for _, field := range fields {
		end := at + len(*field)
		*field, at = s.memory[at:end:end], end
	}
}

// A readAhead unpacks the packs of one statement, in their order. It serves one goroutine, which
// stops it.
type readAhead struct {
	first, last int64
	use         func(*Record, error) bool
	// ring has room for as many packs as are unpacked at once. Those from at on are, count of
	// them.
	ring      []unpacking
	at, count int
}

// newReadAhead unpacks the records from first to last for use. Of few, or on one processor, it
// unpacks one pack after the other.
func newReadAhead(first, last int64, use func(*Record, error) bool) *readAhead {
	packs := runtime.GOMAXPROCS(0)
	if last-first < maxPacked {
		packs = 1
	}
	return &readAhead{first: first, last: last, use: use, ring: make([]unpacking, packs)}
}

// add takes the next pack, whose memory is valid during the call. It returns false if the
// consumer has stopped.
func (a *readAhead) add(p *pack) bool {
	if a.count == len(a.ring) && !a.next() {
		return false
	}
	s := &a.ring[(a.at+a.count)%len(a.ring)]
	s.pack = *p
	if len(a.ring) == 1 {
		s.read(a.first, a.last)
		return s.yield(a.use)
	}
	s.keep()
	s.working.Go(func() { s.read(a.first, a.last) })
	a.count++
	return true
}

// next yields the first of the packs.
func (a *readAhead) next() bool {
	s := &a.ring[a.at]
	s.working.Wait()
	a.at, a.count = (a.at+1)%len(a.ring), a.count-1
	return s.yield(a.use)
}

// drain yields what has been added.
func (a *readAhead) drain() bool {
	for a.count > 0 {
		if !a.next() {
			return false
		}
	}
	return true
}

// stop waits for what is being unpacked. No record of it may be used any more.
func (a *readAhead) stop() {
	for i := range a.ring {
		a.ring[i].working.Wait()
	}
}
