//go:build !unix || freebsd

package auditchain_test

// There are no such limits here, and no log that could be written.
const limitedChild = "AUDITCHAIN_LIMITED_CHILD"

func runLimitedChild(string) {}
