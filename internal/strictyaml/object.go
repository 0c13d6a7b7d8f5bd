package strictyaml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentd/agentd/internal/spelling"
)

// An Object is a mapping with a closed set of keys. Reading a key with [Object.Get]
// or one of its variants declares it; [Object.Done] reports all others.
//
//	o := v.Object()
//	name := o.Need("name").Text()
//	port := o.Get("port").Int(1, 65535)
//	o.Done()
type Object struct {
	value  Value
	asked  []string
	prefix string // keys with this prefix are passed over, if not empty
	needed []string
}

// Object reads the value as a mapping. A value of another kind is a fault, and
// every key of the result is then absent.
func (v Value) Object() *Object {
	o := &Object{value: v}
	if !v.is(Map) {
		// One fault about the kind, rather than one more for each key that the
		// caller asks for.
		o.value.node = nil
	}
	return o
}

// Value returns the mapping itself.
func (o *Object) Value() Value { return o.value }

// Get returns the member called name, which may be absent.
func (o *Object) Get(name string) Value {
	v := o.lookup(name)
	v.key = o.value.key.member(name)
	return v
}

func (o *Object) lookup(name string) Value {
	o.asked = append(o.asked, name)
	if o.value.node != nil {
		for i, k := range o.value.node.keys {
			if k.name == name {
				return o.value.memberAt(i)
			}
		}
	}
	// An absent value has the place of the mapping around it, so that a fault about
	// it still points somewhere useful.
	return Value{file: o.value.file, pointer: join(o.value.pointer, name), line: o.value.line, column: o.value.column}
}

// Need returns the member called name. Its absence is a fault.
func (o *Object) Need(name string) Value {
	v := o.Get(name)
	o.needed = append(o.needed, name)
	// Where the mapping itself is missing or faulty, that fault is enough.
	if !v.Present() && o.value.node != nil {
		at := o.value.Position()
		o.value.file.faults.add(at, fmt.Sprintf("the key %q is missing", name), "")
	}
	return v
}

// GetAny returns the one member called by any of names, which are spellings of
// the same key; two of them are a fault. Hints propose the first spelling only.
func (o *Object) GetAny(names ...string) Value {
	found := o.Get(names[0])
	for _, name := range names[1:] {
		known := o.asked
		v := o.lookup(name)
		found.key.alias(name)
		v.key = found.key
		o.asked = known // an alternative spelling is never proposed by a hint
		switch {
		case !v.Present():
		case found.Present():
			v.Fault(fmt.Sprintf("%q and %q are one key", names[0], name), "keep one of them")
		default:
			found = v
		}
		if v.Present() {
			o.asked = append(o.asked, name)
		}
	}
	return found
}

// PassOver accepts keys that other programs read, with any value.
func (o *Object) PassOver(names ...string) {
	o.asked = append(o.asked, names...)
	for _, name := range names {
		o.value.key.member(name)
	}
}

// PassOverPrefix accepts every key that starts with prefix, with any value.
func (o *Object) PassOverPrefix(prefix string) { o.prefix = prefix }

// Done records a fault for every key that was not declared, with a hint that
// proposes the nearest declared one.
func (o *Object) Done() {
	if o.value.node == nil {
		return
	}
	o.value.key.done(o)
	for i, k := range o.value.node.keys {
		if slices.Contains(o.asked, k.name) || o.prefix != "" && strings.HasPrefix(k.name, o.prefix) {
			continue
		}
		if o.value.file.faults.full() {
			o.value.file.faults.omitted++ // without looking for the nearest key
			continue
		}
		hint := spelling.DidYouMean(k.name, o.asked)
		if hint == "" {
			hint = "known keys: " + strings.Join(o.asked, ", ")
		}
		o.value.memberAt(i).Fault(fmt.Sprintf("unknown key %q", k.name), hint)
	}
}
