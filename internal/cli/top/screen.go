package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Control sequences (ECMA-48, and the private modes of xterm).
const (
	// enter switches to the alternate screen, hides the cursor and lets long lines end at the edge.
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	// endLine clears the rest of a line, endScreen that of the screen.
	endLine   = "\x1b[K"
	endScreen = "\x1b[J"
)

// keyPoll is how long the reader of keys may stay in a read after the view has ended.
const keyPoll = 100 * time.Millisecond

// A screen is a view on a terminal, which it has for itself.
type screen struct {
	in, out  *os.File
	watcher  *watcher
	interval time.Duration
	look     look
	scroll   int // rows of calls above the first that is shown
	shown    *snapshot
}

// run shows views until the user ends it, or ctx. The terminal is as it was when it returns.
func (s *screen) run(ctx context.Context) error {
	before, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(s.in.Fd()), before) }() // nothing is left that could be done
	if _, err := io.WriteString(s.out, enter); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(s.out, leave) }()

	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)

	// Agents that hang must not keep the keys from working: both are read beside the view.
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	keys, views := make(chan key), make(chan *snapshot)
	reading.Go(func() { readKeys(ctx, s.in, keys) })
	reading.Go(func() { s.watch(ctx, views) })
	return s.loop(ctx, keys, views, resized)
}

// loop draws whenever something changes.
func (s *screen) loop(ctx context.Context, keys <-chan key, views <-chan *snapshot, resized <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case k, open := <-keys:
			if !open || !s.press(k) {
				return nil
			}
		case s.shown = <-views:
		case <-resized:
		}
		if s.shown == nil {
			continue
		}
		width, height, err := term.GetSize(int(s.out.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			width, height = 80, 24
		}
		if _, err := io.WriteString(s.out, s.draw(width, height)); err != nil {
			return err
		}
	}
}

// watch takes a snapshot at once, and then one for each interval.
func (s *screen) watch(ctx context.Context, views chan<- *snapshot) {
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		select {
		case views <- s.watcher.take(ctx):
		case <-ctx.Done():
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// press acts on a key, and reports whether the view goes on.
func (s *screen) press(k key) bool {
	orders := sorts()
	at := slices.Index(orders, s.look.order)
	switch k {
	case 'q', 'Q', interrupt:
		return false
	case 'r':
		s.look.order = byRate
	case 'e':
		s.look.order = byErrors
	case 'l':
		s.look.order = byLatency
	case 'f':
		s.look.order = byInFlight
	case 'n':
		s.look.order = byName
	case right:
		s.look.order = orders[(at+1)%len(orders)]
	case left:
		s.look.order = orders[(at+len(orders)-1)%len(orders)]
	case down, 'j':
		s.scroll++
	case up, 'k':
		s.scroll--
	}
	return true
}

const footer = "q quit  ←/→ sort: r rate, e errors, l latency, f in flight, n name  ↑/↓ scroll"

// draw returns what puts the view on a terminal of a size. Troubles are on top; every table has a
// part of the height, and the calls have the rest.
func (s *screen) draw(width, height int) string {
	s.shown.sort(s.look.order)
	l := s.look
	rest := height - 2 // title and footer
	lines := []string{clip(l.title(s.shown), width)}
	add := func(all []string, most int, style func(int, string) string) {
		for i, text := range cut(all, most) {
			lines = append(lines, style(i, clip(text, width)))
			rest--
		}
	}
	heading := func(i int, text string) string {
		if i == 0 {
			return l.colors.Bold(text)
		}
		return text
	}
	add(l.troubles(s.shown), max(2, rest/5), func(_ int, text string) string {
		if strings.HasPrefix(text, "✗") {
			return l.colors.Bad(text)
		}
		return text
	})
	if agents := l.agents(s.shown); len(agents) > 1 {
		add(append([]string{""}, agents...), max(3, rest/3), func(i int, text string) string { return heading(i-1, text) })
	}
	var lower [][]string // tables below the calls, each with an empty line above it
	below, heights := 0, []int{}
	for _, all := range [][]string{l.skills(s.shown), l.models(s.shown)} {
		if len(all) > 1 {
			lower, heights = append(lower, append([]string{""}, all...)), append(heights, min(len(all)+1, rest/4))
			below += heights[len(heights)-1]
		}
	}
	if calls := l.calls(s.shown); len(calls) > 1 {
		most := max(rest-below-1, 2)
		s.scroll = min(max(s.scroll, 0), max(len(calls)-most, 0))
		add([]string{""}, 1, func(_ int, text string) string { return text })
		add(append(calls[:1:1], calls[1+s.scroll:]...), most, heading)
	}
	for i, all := range lower {
		add(all, heights[i], func(i int, text string) string { return heading(i-1, text) })
	}
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(height-1, 0)], l.colors.Dim(clip(footer, width)))
	return home + strings.Join(lines, endLine+"\r\n") + endLine + endScreen
}

// cut cuts lines to a number. The last one then says how many more there are.
func cut(all []string, most int) []string {
	if len(all) <= most {
		return all
	}
	if most <= 0 {
		return nil
	}
	return append(all[:most-1:most-1], fmt.Sprintf("… %d more", len(all)-most+1))
}

// clip cuts a line to a width.
func clip(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:max(width, 0)])
	}
	return text
}

// A key is a character, or one of those below.
type key rune

const (
	interrupt key = 3 // Ctrl-C, which a raw terminal passes on
	up        key = -iota
	down
	right
	left
)

// readKeys sends keys until ctx ends or there are no more, and closes the channel. It reads only
// what is there: a read that waits could not be ended.
func readKeys(ctx context.Context, in *os.File, keys chan<- key) {
	defer close(keys)
	var parse keyParser
	buffer := make([]byte, 64)
	for ctx.Err() == nil {
		fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}} //nolint:gosec // a file descriptor
		if n, err := unix.Poll(fds, int(keyPoll.Milliseconds())); err == unix.EINTR || err == nil && n == 0 {
			continue
		} else if err != nil {
			return
		}
		n, err := in.Read(buffer)
		if err != nil || n == 0 {
			return // the terminal is gone
		}
		for _, b := range buffer[:n] {
			k, ok := parse.next(b)
			if !ok {
				continue
			}
			select {
			case keys <- k:
			case <-ctx.Done():
				return
			}
		}
	}
}

// A keyParser makes keys of bytes. Arrow keys come as ESC [ A to D, or ESC O A to D.
type keyParser struct{ escape int }

// next takes a byte, and returns the key that it ends.
func (p *keyParser) next(b byte) (k key, ok bool) {
	switch {
	case b == 0x1b:
		p.escape = 1
	case p.escape == 1 && (b == '[' || b == 'O'):
		p.escape = 2
	case p.escape == 2:
		// Parameters, as those of other function keys, come before the last byte.
		if b >= '@' {
			p.escape = 0
			k, ok = map[byte]key{'A': up, 'B': down, 'C': right, 'D': left}[b]
		}
	default:
		p.escape = 0
		return key(b), true
	}
	return k, ok
}
