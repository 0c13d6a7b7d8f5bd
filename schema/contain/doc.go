// Package contain proves statements about all values of a schema: whether every
// value that one schema accepts is accepted by another ([IsSubschema]), in what two
// schemas differ and whether it breaks anything ([Explain]), and a value that a
// schema accepts ([Sample]).
//
// There are three answers: proven, refuted with a witness, and undecided with a
// reason. The answers are sound. A proof is a search that ended without a value,
// and a witness has been judged by the validators of both schemas. Questions that a
// [Budget] does not suffice for are undecided, never guessed.
//
// # The path of a proof
//
// IsSubschema(a, b) asks for a value of "a and not b" (contain.go). The schemas of
// both sides become forms, one for all schemas that accept the same values because
// they say the same (form.go), and what a form means opens, one level at a time
// (open.go), into terms (term.go, negate.go). The prover looks for a value that
// satisfies a set of terms (prover.go): it merges what is certain into a state for
// each type of value (state.go), decides what is left by propagation (solve.go) and,
// last, by search (branch.go), and asks the theory of that type: number.go, string.go, array.go, object.go, and
// literal.go where only listed values are left. Strings are decided by the automata
// of schema/internal/regular.
//
// Explain walks two schemas side by side (explain*.go) and asks the prover about
// each difference that it meets.
package contain
