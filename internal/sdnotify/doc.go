// Package sdnotify tells systemd how a service is (sd_notify(3)): a datagram on
// the Unix socket that $NOTIFY_SOCKET names. Without one it does nothing.
package sdnotify
