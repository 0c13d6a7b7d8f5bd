package rpc

// An InlineHandler is a [Handler] that may promise to be quick. Such a one runs where its
// requests arrive: requests behind it wait until it returns, but no other goroutine has to
// be woken for it. It is for functions that compute or look up in memory; it makes no calls
// and waits for nothing. See package callee for what becomes of one that does not keep its
// promise.
type InlineHandler interface {
	Handler
	// Inline reports whether the handler makes that promise. It is always the same.
	Inline() bool
}

// Inline returns h with the promise that it is quick, see [InlineHandler].
func Inline(h Handler) Handler { return inline{h} }

// IsInline reports whether h is an [InlineHandler] that promises to be quick.
func IsInline(h Handler) bool {
	i, ok := h.(InlineHandler)
	return ok && i.Inline()
}

type inline struct{ Handler }

// Inline implements [InlineHandler].
func (inline) Inline() bool { return true }
