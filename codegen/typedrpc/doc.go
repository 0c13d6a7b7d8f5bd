// Package typedrpc joins generated Go code to package rpc: a generated client
// calls through an rpc.Client, and a generated server's skills are the handlers
// of an rpc.Inbox.
//
//	reviewer := prreviewer.NewClient(typedrpc.Caller(client))
//
//	var mux typed.Mux
//	prreviewer.RegisterServer(&mux, server)
//	inbox, err := rpc.NewInbox(rpc.InboxConfig{Handlers: typedrpc.Handlers(&mux), …})
package typedrpc
