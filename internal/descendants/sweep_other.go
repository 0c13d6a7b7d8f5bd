//go:build !linux

package descendants

import "github.com/agentd/agentd/internal/procmark"

// Other systems show no descendants: what has left its process group is not found.

func (f *Family) endStrays(procmark.Mark) (int, error) { return 0, nil }

func (f *Family) endAll(*procmark.Source) (int, error) { return 0, nil }

func (f *Family) reapAdopted() {}
