// Package demo plays four calls on the sample fleet and shows what comes of
// them: an answer, a request that breaks its schema, an answer that breaks its
// schema, and a peer that is not there.
package demo
