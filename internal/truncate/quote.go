package truncate

import "strconv"

// maxQuoted is how many bytes of a name [Quote] shows.
const maxQuoted = 64

// Quote shows a name in a message: in quotes, with control characters escaped and
// cut to a readable length.
func Quote(name string) string { return strconv.Quote(String(name, maxQuoted)) }
