// Package wire is what the two ends of a call agree on beyond the envelope: the
// payload of a reply, the topics beside the requests topic, and the headers that
// both ends read.
package wire
