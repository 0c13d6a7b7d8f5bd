// Package ident makes identifiers of names that may hold any characters.
package ident
