package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

// A plan is what to measure.
type plan struct {
	payloads, callers []int
	duration          time.Duration
	rounds            int
	only              string
	profile           string
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == roleFlag {
		exit(runRole(os.Args[2:]))
	}
	var p plan
	var payloads, callers string
	flag.StringVar(&payloads, "payload", "200,4096", "sizes of the payload in bytes")
	flag.StringVar(&callers, "callers", "1,16,256", "numbers of concurrent callers")
	flag.DurationVar(&p.duration, "for", time.Second, "time of one measurement")
	flag.IntVar(&p.rounds, "rounds", 3, "measurements of each; the median counts")
	flag.StringVar(&p.only, "only", "", "one system alone")
	flag.StringVar(&p.profile, "profile", "", "folder for CPU profiles of caller and callee")
	flag.Parse()
	var err error
	if p.payloads, err = numbers(payloads); err == nil {
		p.callers, err = numbers(callers)
	}
	if err != nil {
		exit(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(p.run(ctx, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func numbers(list string) ([]int, error) {
	var out []int
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no list of positive numbers", list)
		}
		out = append(out, n)
	}
	return out, nil
}
