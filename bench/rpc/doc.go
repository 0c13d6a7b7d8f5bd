// Command rpc measures calls between two processes over NATS, side by side in one
// run: raw nats.go request/reply, nats micro, gRPC-go unary, and agentd with
// payloads validated at both ends.
//
//	go run ./rpc [-payload 200,4096] [-callers 1,16,256] [-for 1s] [-rounds 3]
//
// The broker, each callee and the caller are processes of their own. Systems
// take turns in every round, so that what else the machine does hits all of them;
// the table shows the median round. CPU is what caller and callee use together,
// user and system time; the broker's stands beside it.
package main
