package strictyaml

// A Kind is the type of a value, as JSON has them.
type Kind uint8

// The kinds of value. Absent is the kind of a [Value] that is not in the file.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	List
	Map
)

// String is the kind as messages name it: "a string", "null".
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case List:
		return "a list"
	case Map:
		return "a mapping"
	}
	return "nothing"
}

// node is one value of a file.
type node struct {
	kind         Kind
	text         string // a String's content; the JSON token of a Bool or Number
	keys         []key  // a Map's keys, in declared order, without duplicates
	items        []*node
	line, column int
}

type key struct {
	name         string
	line, column int
}
