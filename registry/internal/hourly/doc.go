// Package hourly bounds what an agent sends in an hour, whoever in the agent asks for it,
// and however often the agent starts again.
package hourly
