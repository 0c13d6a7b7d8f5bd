// Package sdnotify reports the state of a service to systemd, as sd_notify(3)
// does: with datagrams to the Unix socket that $NOTIFY_SOCKET names. Without that
// variable it does nothing.
package sdnotify
