// Package durable writes small files so that a crash leaves the old text or
// the new one, never a part.
package durable
