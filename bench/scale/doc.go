// Scale checks the formulas of docs/scale.md: it runs a fleet of real daemons, in this
// process, on a cluster of three real nats-servers, each a process of its own, and compares
// what the formulas predict with what the servers count. It writes the tables of
// docs/scale-measured.md and fails if a formula is off by more than a bound.
//
//	cd bench && go run ./scale -agents 1000 -o ../docs/scale-measured.md
//
// Where to look: formula.go has the formulas, node.go the servers, agents.go the fleet,
// phases.go what is done with it, and page.go the page.
package main
