// Command rpc measures calls between two processes on one machine, side by side in one
// run: agentd as it ships, its parts, and what else people would use.
//
//	go run ./rpc                                    # all of it: some minutes
//	go run ./rpc -only raw,floor,run -callers 256 -rates none -payload 200 -for 1s
//
// Broker, callee and caller of each system are processes of their own. They start once;
// then the systems take turns in every round, so that what else the machine does hits
// all of them. Ratios are those of one round; tables show the median of the rounds and
// the lowest and the highest.
//
// Callers are a closed loop at saturation. Rates are an open loop: calls begin by a
// schedule, and their latency counts from when the schedule wanted them to. See package
// loadgen. CPU and allocations are those of both ends, until they rest again.
package main
