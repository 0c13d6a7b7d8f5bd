// Package typedrpc joins generated Go code to the two ends of a call: a
// generated client calls through an rpc/caller.Client, and a generated server's
// skills are the handlers of an rpc/callee.Inbox.
//
//	reviewer := prreviewer.NewClient(typedrpc.Caller(client))
//
//	var mux typed.Mux
//	prreviewer.RegisterServer(&mux, server)
//	inbox, err := callee.New(callee.Config{Handlers: typedrpc.Handlers(&mux), …})
package typedrpc
