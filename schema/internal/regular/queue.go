package regular

// entry is a node of the search that waits to be visited.
type entry struct {
	total  int32 // the least length that the node may lead to
	length int32
	node   int32
}

// before orders by total, then the longest first, then the oldest. The longest
// of equal promise is closest to an answer. The age makes the order total, so
// that the same query always finds the same string.
func (e entry) before(f entry) bool {
	switch {
	case e.total != f.total:
		return e.total < f.total
	case e.length != f.length:
		return e.length > f.length
	}
	return e.node < f.node
}

// queue is a binary heap of entries. container/heap would box each entry in an
// interface, and entries are what a search makes the most of.
type queue []entry

// push adds an entry.
func (q *queue) push(e entry) {
	*q = append(*q, e)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// pop removes the first entry and returns its node.
func (q *queue) pop() int {
	h := *q
	first := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		next := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && h[child].before(h[next]) {
				next = child
			}
		}
		if next == i {
			break
		}
		h[i], h[next] = h[next], h[i]
		i = next
	}
	*q = h
	return int(first.node)
}
