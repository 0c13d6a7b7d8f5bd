package refcount

import (
	"errors"
	"io"
	"sync"
)

// A Pool has what is open, by keys. The zero value is ready, and safe for concurrent use.
type Pool[T io.Closer] struct {
	mu   sync.Mutex
	open map[string]*shared[T]
}

// A shared value has users.
type shared[T io.Closer] struct {
	value T
	users int // guarded by the pool's lock
}

// A Ref is one use of a value.
type Ref[T io.Closer] struct {
	Value T

	pool *Pool[T]
	key  string
	of   *shared[T]
	once sync.Once
	err  error
}

// Use returns what was opened with key, or opens it. A key names all that it is opened with.
// open must return at once: others wait for it.
func (p *Pool[T]) Use(key string, open func() (T, error)) (*Ref[T], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.open[key]
	if s == nil {
		value, err := open()
		if err != nil {
			return nil, err
		}
		s = &shared[T]{value: value}
		if p.open == nil {
			p.open = map[string]*shared[T]{}
		}
		p.open[key] = s
	}
	s.users++
	return &Ref[T]{Value: s.value, pool: p, key: key, of: s}, nil
}

// Release ends the use. The last user closes the value, and waits for that. Once is enough.
func (r *Ref[T]) Release() error {
	r.once.Do(func() {
		if r.pool.leave(r) {
			r.err = r.Value.Close()
		}
	})
	return r.err
}

// leave reports whether nobody uses the value any more.
func (p *Pool[T]) leave(r *Ref[T]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.of.users--; r.of.users > 0 {
		return false
	}
	delete(p.open, r.key)
	return true
}

// CloseAll closes all values at once, whoever uses them, and returns when that is done. They are
// closed again by their last users, which must do no harm.
func (p *Pool[T]) CloseAll() error {
	p.mu.Lock()
	var all []T
	for _, s := range p.open {
		all = append(all, s.value)
	}
	p.mu.Unlock()
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, value := range all {
		closing.Go(func() { errs[i] = value.Close() })
	}
	closing.Wait()
	return errors.Join(errs...)
}
