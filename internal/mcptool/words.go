package mcptool

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/agentd/agentd/capability/compat"
	"github.com/agentd/agentd/internal/mcpclient"
)

// maxWords bounds the changed words that are listed of one tool.
const maxWords = 20

// A place is where words stand: a part of a contract, and a pointer into it.
type place struct{ part, path string }

// wordsOf returns the words of a contract that models read. Those of the output schema are
// none where only the server has one.
func wordsOf(c mcpclient.Contract, output bool) map[place]string {
	all := map[place]string{{mcpclient.PartDescription, ""}: c.Description}
	for path, text := range compat.Words(c.InputSchema) {
		all[place{"inputSchema", path}] = text
	}
	if output {
		for path, text := range compat.Words(c.OutputSchema) {
			all[place{"outputSchema", path}] = text
		}
	}
	return all
}

// reworded lists the words that the server has changed, added or left out. It compares the
// words alone, so that no number of other changes hides one.
func reworded(pinned, served mcpclient.Contract) (words []mcpclient.Change) {
	old, now := wordsOf(pinned, true), wordsOf(served, pinned.OutputSchema != nil)
	var places []place
	for at, text := range old {
		if is, has := now[at]; !has || is != text {
			places = append(places, at)
		}
	}
	for at := range now {
		if _, had := old[at]; !had {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.path, b.path)) })
	for i, at := range places {
		if i == maxWords {
			return append(words, mcpclient.Change{Part: at.part, Note: fmt.Sprintf("%d more texts are not the pinned ones", len(places)-i)})
		}
		words = append(words, mcpclient.TextChange(at.part, at.path, textAt(old, at), textAt(now, at)))
	}
	return words
}

func textAt(words map[place]string, at place) *string {
	if text, ok := words[at]; ok {
		return &text
	}
	return nil
}
