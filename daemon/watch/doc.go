// Package watch reports changes of files, however they are changed: written in
// place, replaced by an editor, or swapped like a mounted volume of Kubernetes.
package watch
