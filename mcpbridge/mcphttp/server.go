package mcphttp

import (
	"log/slog"
	"net/http"
	"time"
)

// NewServer makes a server for a handler, with bounds for clients that are slow before the
// handler sees them. It has no bounds on whole requests and answers, because calls and streams
// may last: the handler bounds each read and write.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // strangers could fill the log
	}
}
