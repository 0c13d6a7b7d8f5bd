// Package watch tells when files have changed, however they are changed: written
// in place, replaced by an editor, or swapped as a mounted volume of Kubernetes is.
package watch
