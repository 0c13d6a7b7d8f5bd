// Package calllog names the call in every line of the log that is written while it is
// served: code that knows nothing of calls, such as a tool or a library, passes its context
// to the logger, and the line leads to the call in other logs, in records and in traces.
package calllog
