package natsauth_test

import (
	"fmt"
	"testing"

	"github.com/agentd/agentd/transport/nats/natsauth"
)

// The rules of fleets of several sizes, in which each agent has nine peers: ten times the
// agents should take ten times as long.
func BenchmarkDerive(b *testing.B) {
	for _, n := range []int{100, 1000, 3000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			members := make([]member, n)
			for i := range members {
				members[i] = member{id: fmt.Sprint("a", i), subject: fmt.Sprintf("agents.a%d.requests", i)}
				for k := range 9 {
					peer := (i + 1 + k*n/10) % n
					members[i].peers = append(members[i].peers, fmt.Sprintf("a%d agents.a%d.requests", peer, peer))
				}
			}
			f := load(b, members...)
			for b.Loop() {
				if _, err := natsauth.Derive(f, natsauth.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
