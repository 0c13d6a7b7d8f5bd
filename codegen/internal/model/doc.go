// Package model turns the compiled schemas of an agent's capabilities into
// types that every language can write: names are unique, references lead to
// named types, unions and intersections are worked out.
//
// The steps of [New], each in the file of its name: build the type of every
// schema; work out what intersections come to; prune unions; give names to the
// types that need one; mark the types that contain themselves.
//
// Every value that a schema accepts is a value of its type; the type may accept
// more. A step that cannot be exact therefore errs by widening.
package model
