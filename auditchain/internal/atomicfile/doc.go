// Package atomicfile replaces small files such that a crash leaves either the
// old text or the new one, never a part of one, and reads them whoever else can write
// to their folder.
package atomicfile
