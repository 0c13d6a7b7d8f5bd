package jsontree

// Kind is the JSON type of a value. Integers are numbers here: whether a number
// has a fraction takes a look at its value.
type Kind uint8

// The kinds, scalars first, in the order of the bits of ir.TypeSet.
const (
	Null Kind = iota
	Boolean
	Number
	String
	Array
	Object
)

// KindOf tells the type of a value by its first byte. A byte that starts no
// value counts as null, where the scan of the literal refuses it.
func KindOf(c byte) Kind {
	switch c {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	case 't', 'f':
		return Boolean
	}
	return Null
}

// String returns the kind as the keyword type names it.
func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}
