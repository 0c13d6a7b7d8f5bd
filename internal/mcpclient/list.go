package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A listing is what a server serves, by the names of its tools.
type listing map[string]Contract

// list reads the contracts of all tools. A tool that the library drops, for headers that
// the protocol forbids, is dropped here too.
func (l *link) list(ctx context.Context) (listing, error) {
	all := listing{}
	size, cursor := 0, ""
	for range maxPages {
		page, next, err := l.page(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for _, raw := range page {
			if size += len(raw); size > maxListBytes {
				return nil, fmt.Errorf("the server's list of tools has more than %d bytes", maxListBytes)
			}
			c, err := parseContract(raw)
			if err != nil {
				return nil, fmt.Errorf("a tool in the server's list: %w", err)
			}
			if _, twice := all[c.Name]; twice {
				return nil, fmt.Errorf("the server lists the tool %s twice", shown(c.Name))
			}
			if all[c.Name] = c; len(all) > maxTools {
				return nil, fmt.Errorf("the server lists more than %d tools", maxTools)
			}
		}
		if next == "" {
			return all, nil
		}
		cursor = next
	}
	return nil, fmt.Errorf("the server's list of tools has more than %d pages", maxPages)
}

// page reads one page, in the bytes of the server.
func (l *link) page(ctx context.Context, cursor string) (tools []json.RawMessage, next string, err error) {
	ctx, capture := withCapture(ctx)
	result, err := l.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
	got := capture.outcome()
	if err != nil {
		if got.err != nil {
			err = got.err
		}
		return nil, "", fmt.Errorf("the server's list of tools: %w", err)
	}
	if got.result == nil {
		return nil, "", errors.New("the server's list of tools did not come as the answer to its request")
	}
	var page struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(got.result, &page); err != nil {
		return nil, "", fmt.Errorf("the server's list of tools: %w", err)
	}
	kept := map[string]bool{}
	for _, t := range result.Tools {
		kept[t.Name] = true
	}
	tools = slices.DeleteFunc(page.Tools, func(raw json.RawMessage) bool {
		c, err := parseContract(raw)
		return err == nil && !kept[c.Name]
	})
	return tools, result.NextCursor, nil
}

// sorted returns the contracts by name.
func (l listing) sorted() []Contract {
	all := make([]Contract, 0, len(l))
	for _, c := range l {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Contract) int { return strings.Compare(a.Name, b.Name) })
	return all
}
