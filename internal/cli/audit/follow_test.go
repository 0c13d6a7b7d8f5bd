package audit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/internal/eventually"
	"github.com/agentd/agentd/internal/output"
)

// A follower prints the backlog, then what is appended to any of the logs, each
// record once, and ends without an error when it is stopped.
func TestFollow(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"clerk": calls(2, "s"), "desk": calls(3, "s")})
	env.Format = output.JSONL
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Query(ctx, &env.Env, QueryRequest{Limit: 2, Follow: true}) }()
	printed := func(n int) func() bool {
		return func() bool { return strings.Count(env.Out.String(), "\n") >= n }
	}
	eventually.Holds(t, "the backlog is printed", printed(2))
	appendTo(t, dbOf(t, env, "clerk"), calls(1, "new")...)
	appendTo(t, dbOf(t, env, "desk"), calls(2, "new")...)
	eventually.Holds(t, "the new records are printed", printed(5))
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the end of following: %v", err)
	}
	type line struct {
		Agent     string
		Seq       int64
		SessionID string `json:"sessionId"`
	}
	fresh := slices.Clone(lines[line](t, env.Out.String())[2:])
	slices.SortFunc(fresh, func(x, y line) int { return strings.Compare(x.Agent, y.Agent)*10 + int(x.Seq-y.Seq) })
	if len(fresh) != 3 || fresh[0].Agent != "clerk" || fresh[0].Seq != 3 || fresh[1].Seq != 4 || fresh[2].Seq != 5 {
		t.Errorf("followed %+v", fresh)
	}
}

// With --after the follower begins there, and with no limit it prints everything.
func TestFollowFrom(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(5, "s")})
	env.Format = output.JSONL
	for _, test := range []struct {
		request QueryRequest
		want    []int64
	}{
		{QueryRequest{Logs: Choice{Agent: "desk"}, After: 3, Limit: 1}, []int64{4, 5}},
		{QueryRequest{Logs: Choice{Agent: "desk"}}, []int64{1, 2, 3, 4, 5}},
		{QueryRequest{Logs: Choice{Agent: "desk"}, Limit: 2}, []int64{4, 5}},
	} {
		env.Reset()
		test.request.Follow = true
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Query(ctx, &env.Env, test.request) }()
		eventually.Holds(t, "the records are printed", func() bool { return strings.Count(env.Out.String(), "\n") >= len(test.want) })
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := numbers(t, env); !slices.Equal(got, test.want) {
			t.Errorf("%+v: records %v, want %v", test.request, got, test.want)
		}
	}
}

// A reader that goes away, such as head, ends the follower with its error.
func TestFollowIntoClosedPipe(t *testing.T) {
	t.Parallel()
	env := newOffice(t, map[string][]auditchain.Record{"desk": calls(1, "s")})
	env.Format = output.JSONL
	gone := errors.New("broken pipe")
	env.Stdout = failingWriter{gone}
	if err := Query(t.Context(), &env.Env, QueryRequest{Follow: true, Limit: 1}); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
