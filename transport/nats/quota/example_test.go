package quota_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentd/agentd/capability"
	"github.com/agentd/agentd/policy"
	"github.com/agentd/agentd/transport/nats"
	"github.com/agentd/agentd/transport/nats/quota"
)

func ExampleNew() {
	conn, err := nats.Connect(context.Background(), nats.Options{Servers: []string{"nats://127.0.0.1:4222"}})
	if err != nil {
		fmt.Println(err) // no server is running there
		return
	}
	defer conn.Close()
	js, err := conn.JetStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := quota.New(quota.Options{
		JetStream: js, Bucket: "agentd-limits-pr-reviewer", Local: policy.NewRateLimiter(0), Logger: slog.Default(),
	})
	review := &capability.Capability{Name: "review-pr", RateLimit: &capability.RateLimit{
		Requests: 100, Burst: 100, Period: time.Minute, Shared: true,
	}}
	fmt.Println(limiter.Take("agent://concierge", "", review, time.Now()).Allowed)
}
