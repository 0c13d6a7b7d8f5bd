package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxSocketPath is the longest path of a Unix socket on every system that agentd
// runs on: sun_path has 104 bytes on macOS and 108 on Linux, with a NUL at the end.
const maxSocketPath = 103

// A Server serves the API on a Unix socket.
type Server struct {
	http     *http.Server
	listener net.Listener
	path     string
	done     chan error // receives the error of Serve
}

// Listen opens the socket at path, with mode 0600 in a folder with mode 0700,
// and serves h there until [Server.Shutdown]. It replaces a socket that a killed
// process left behind; a socket that accepts connections is an error. ctx bounds
// only the opening.
func Listen(ctx context.Context, path string, h http.Handler, log *slog.Logger) (*Server, error) {
	return listen(ctx, path, h, log, userName)
}

// listen is Listen with the name service that it asks for users.
func listen(ctx context.Context, path string, h http.Handler, log *slog.Logger, nameOf func(uid uint32) string) (*Server, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("control socket: the path %s is longer than the %d bytes that a socket may have: set XDG_RUNTIME_DIR to a shorter folder", path, maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// After MkdirAll, which is content with a folder that another user has made.
	if err := checkOwner(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// The folder keeps others out until this has taken effect.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), listener.Close())
	}
	s := &Server{
		listener: listener, path: path, done: make(chan error, 1),
		http: &http.Server{
			// There is no WriteTimeout: a response may take as long as the longest
			// call.
			Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
			MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
			ConnContext: func(ctx context.Context, conn net.Conn) context.Context { return withPeer(ctx, conn, nameOf) },
		},
	}
	// Serve returns when Shutdown closes the listener; Shutdown receives its error.
	go func() { s.done <- s.http.Serve(listener) }()
	return s, nil
}

// checkOwner rejects a folder that another user owns, or whose parent one does. In
// a shared temporary folder another user could have created it first, and could
// then replace the socket and receive what is sent to it.
func checkOwner(dir string) error {
	for _, d := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Lstat(d)
		if err != nil {
			return fmt.Errorf("control socket: %w", err)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		// root may own the parent, as it does /run/user and /tmp.
		if ok && int(stat.Uid) != os.Getuid() && stat.Uid != 0 {
			return fmt.Errorf("control socket: the folder %s belongs to another user: set XDG_RUNTIME_DIR to a folder of your own", d)
		}
	}
	return nil
}

// removeStale removes a socket that no process serves.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("control socket: %w", err)
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("control socket: %s exists and is no socket", path)
	}
	if Answers(ctx, path) {
		return fmt.Errorf("control socket: another agentd serves %s: stop it first", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// Answers reports whether a process accepts connections on the socket at path.
func Answers(ctx context.Context, path string) bool {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was written that could be lost
	return true
}

// Path returns the path of the socket.
func (s *Server) Path() string { return s.path }

// Shutdown stops accepting requests, waits for those in progress until ctx ends,
// and then cuts them off. The socket no longer exists when it returns.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("control socket: requests were cut short: %w", err), s.http.Close())
	}
	if serr := <-s.done; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}
