package mcpclient

import (
	"context"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Progress is how far a call has come, as the server says.
type Progress struct {
	Done, Total float64
	Message     string
}

// progresses hands what a server reports to the calls that it is about.
type progresses struct {
	mu   sync.Mutex
	next int64
	to   map[string]func(Progress)
}

func (p *progresses) add(f func(Progress)) (token string, remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	token = "call-" + strconv.FormatInt(p.next, 10)
	if p.to == nil {
		p.to = map[string]func(Progress){}
	}
	p.to[token] = f
	return token, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.to, token)
	}
}

func (p *progresses) handle(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	token, _ := req.Params.ProgressToken.(string)
	p.mu.Lock()
	defer p.mu.Unlock() // after remove, nothing is reported any more
	if f := p.to[token]; f != nil {
		f(Progress{Done: req.Params.Progress, Total: req.Params.Total, Message: shown(req.Params.Message)})
	}
}
