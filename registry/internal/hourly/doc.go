// Package hourly bounds what an agent sends in an hour, whoever in the agent asks for it.
package hourly
