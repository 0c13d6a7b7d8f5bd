package strictyaml

import (
	"math"
	"slices"
)

// A Key is what decoders have asked of the values at one place of a kind of file, gathered
// over all files that were traced: the reference and the editors' schemas of files are made
// of it, so that they cannot say another thing than the decoders do.
type Key struct {
	// Name is that of the member, "" for the root, an item or an entry. Aliases are its other
	// spellings.
	Name    string
	Aliases []string
	// Members are the keys of a mapping with a closed set of them, in the order in which
	// they were asked for. Prefix accepts further ones that begin so, and Closed refuses all
	// others.
	Members []*Key
	Prefix  string
	Closed  bool
	// Entry is for the values of a mapping with names of the user's choice, Item for the
	// items of a list.
	Entry, Item *Key
	// Kinds are those that the value may have; without any, it may be whatever it likes.
	Kinds []Kind
	// Enum lists the strings that are allowed, if they are a closed set, and NonEmpty refuses
	// the empty string. AtLeastOne refuses the empty list.
	Enum                 []string
	NonEmpty, AtLeastOne bool
	// Low and High bound a number where Bounded is set, and Whole has no fraction.
	Low, High      float64
	Bounded, Whole bool
	// Raw is set where the value was taken as the JSON that it is, whatever that has.
	Raw bool

	free    bool // it was read as any string
	empty   bool // … which may be empty
	objects int  // how often the mapping was read to its end
	needed  int  // in how many of those of its parent the key was needed
}

// ParseTraced is [Parse] for a file whose decoder's questions are added to root.
func ParseTraced(name string, src []byte, root *Key) (*File, error) {
	f, err := Parse(name, src)
	if err == nil {
		f.trace = root
	}
	return f, err
}

// RequiredIn reports whether the key was needed in each mapping of its parent.
func (k *Key) RequiredIn(parent *Key) bool { return parent.objects > 0 && k.needed == parent.objects }

// member returns the member of that name, which is added if it is new.
func (k *Key) member(name string) *Key {
	if k == nil {
		return nil
	}
	for _, m := range k.Members {
		if m.Name == name || slices.Contains(m.Aliases, name) {
			return m
		}
	}
	m := &Key{Name: name}
	k.Members = append(k.Members, m)
	return m
}

func (k *Key) alias(name string) {
	if k != nil && k.Name != name && !slices.Contains(k.Aliases, name) {
		k.Aliases = append(k.Aliases, name)
	}
}

func (k *Key) item() *Key {
	if k == nil {
		return nil
	}
	if k.Item == nil {
		k.Item = &Key{}
	}
	return k.Item
}

func (k *Key) entry() *Key {
	if k == nil {
		return nil
	}
	if k.Entry == nil {
		k.Entry = &Key{}
	}
	return k.Entry
}

func (k *Key) read(kind Kind) {
	if k != nil && !slices.Contains(k.Kinds, kind) {
		k.Kinds = append(k.Kinds, kind)
	}
}

func (k *Key) readString(nonEmpty bool) {
	if k != nil {
		k.free, k.Enum = true, nil
		k.empty = k.empty || !nonEmpty
		k.NonEmpty = !k.empty
	}
}

func (k *Key) readEnum(allowed []string) {
	if k == nil || k.free {
		return
	}
	for _, text := range allowed {
		if !slices.Contains(k.Enum, text) {
			k.Enum = append(k.Enum, text)
		}
	}
}

func (k *Key) readNumber(low, high float64, whole bool) {
	if k == nil {
		return
	}
	if !k.Bounded {
		k.Low, k.High, k.Bounded, k.Whole = low, high, true, whole
		return
	}
	k.Low, k.High, k.Whole = math.Min(k.Low, low), math.Max(k.High, high), k.Whole && whole
}

// done notes a mapping that was read to its end.
func (k *Key) done(o *Object) {
	if k == nil {
		return
	}
	k.Closed, k.Prefix = true, o.prefix
	k.objects++
	for _, name := range o.needed {
		k.member(name).needed++
	}
}
