// Package hosttest is the conformance suite of worlds: what node code and the
// harness may rely on, whatever the world. The simulation and the real-time
// world pass the same cases.
package hosttest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// World is a world that the suite can run and close.
type World interface {
	host.World
	Run(ctx context.Context, main func(ctx context.Context, c host.Control) error) error
	Close()
}

// Options are what a case asks of its world.
type Options struct {
	Seed    uint64
	Observe func(node cluster.NodeID, at time.Duration, e history.Event)
}

// Maker makes a world. Its ZooKeeper, if it has one, is empty and answers.
type Maker func(t *testing.T, o Options) World

// Run runs every case that needs no ZooKeeper.
func Run(t *testing.T, make Maker) {
	t.Helper()
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"tasks", taskCases()},
		{"kill", killCases()},
		{"pause", pauseCases()},
		{"calls", callCases()},
		{"links", linkCases()},
		{"disk", diskCases()},
		{"chaos", chaosCases()},
	} {
		t.Run(group.name, func(t *testing.T) { runCases(t, make, group.cases) })
	}
}

// RunEnds runs the cases of how a world's Run ends.
func RunEnds(t *testing.T, make Maker) {
	t.Helper()
	end := func(main func(ctx context.Context, c host.Control) error) error {
		w := make(t, Options{})
		t.Cleanup(w.Close)
		return w.Run(t.Context(), main)
	}
	mine := errors.New("mine")
	require.NoError(t, end(func(context.Context, host.Control) error { return nil }))
	require.ErrorIs(t, end(func(context.Context, host.Control) error { return mine }), mine)
	require.ErrorIs(t, end(func(_ context.Context, c host.Control) error { c.Exit(mine); return nil }), mine)
	require.Error(t, end(func(_ context.Context, c host.Control) error { c.Exit(nil); return nil }))
	require.ErrorContains(t, end(func(context.Context, host.Control) error { panic("ouch") }), "ouch")
	require.ErrorContains(t, end(func(ctx context.Context, c host.Control) error {
		c.Go(ctx, "clumsy", func(context.Context) { panic("ouch") })
		return c.Sleep(ctx, time.Hour)
	}), "clumsy")
}

// RunLeavesNothing ends a run by Goexit, as a failed requirement does, and
// checks that the world was closed: another run of it is refused.
func RunLeavesNothing(t *testing.T, make Maker) {
	t.Helper()
	w := make(t, Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
			c.Go(ctx, "other", func(ctx context.Context) { _ = c.Sleep(ctx, time.Hour) })
			n := w.NewNode("a", echo)
			if err := n.Start(ctx); err != nil {
				return err
			}
			runtime.Goexit()
			return nil
		})
		t.Error("Run returned")
	})
	wg.Wait()
	require.Error(t, w.Run(t.Context(), func(context.Context, host.Control) error { return nil }))
}

type testCase struct {
	name string
	run  func(ctx context.Context, b *bench)
}

func runCases(t *testing.T, make Maker, cases []testCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := &bench{t: t, nodes: map[cluster.NodeID]host.Node{}}
			b.w = make(t, Options{Seed: 7, Observe: b.observe})
			t.Cleanup(b.w.Close)
			std, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := b.w.Run(std, func(ctx context.Context, control host.Control) error {
				b.c = control
				ctx, cancel := control.WithTimeout(ctx, 50*time.Second)
				defer cancel()
				c.run(ctx, b)
				return nil
			})
			require.NoError(t, err)
		})
	}
}

// bench is what a case works with. Cases run as the control node's main task;
// what other nodes tell it goes through tell and told.
type bench struct {
	t     *testing.T
	w     World
	c     host.Control
	nodes map[cluster.NodeID]host.Node
	// visitors counts the nodes that elsewhere has started.
	visitors int

	mu     sync.Mutex
	said   []string
	events []seen
}

type seen struct {
	node  cluster.NodeID
	event history.Event
}

func (b *bench) observe(node cluster.NodeID, _ time.Duration, e history.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, seen{node, e})
}

// say records a word; nodes call it from their own goroutines.
func (b *bench) say(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, s)
}

// heard is what was said so far.
func (b *bench) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.said...)
}

// seenOf is the events of a node so far.
func (b *bench) seenOf(id cluster.NodeID) []history.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []history.Event
	for _, s := range b.events {
		if s.node == id {
			all = append(all, s.event)
		}
	}
	return all
}

// states are the node events of node a, in order.
func (b *bench) states() []string {
	var all []string
	for _, e := range b.seenOf("a") {
		if n, ok := e.(history.Node); ok {
			all = append(all, n.State)
		}
	}
	return all
}

// start declares a node, starts it, and waits until main has run to its first
// park or end.
func (b *bench) start(ctx context.Context, id cluster.NodeID, main host.Main) host.Node {
	b.t.Helper()
	n := b.w.NewNode(id, main)
	b.nodes[id] = n
	require.NoError(b.t, n.Start(ctx))
	require.NoError(b.t, n.Resume(ctx)) // comes after the first step of main
	return n
}

// rest gives the other nodes time.
func (b *bench) rest(ctx context.Context) { b.sleep(ctx, 20*time.Millisecond) }

func (b *bench) sleep(ctx context.Context, d time.Duration) {
	b.t.Helper()
	require.NoError(b.t, b.c.Sleep(ctx, d))
}

// until polls a condition for a while.
func (b *bench) until(ctx context.Context, what string, cond func() bool) {
	b.t.Helper()
	for range 2000 {
		if cond() {
			return
		}
		b.sleep(ctx, 5*time.Millisecond)
	}
	require.Fail(b.t, "not reached: "+what, "heard %v", b.heard())
}

// call calls with a time-out.
func (b *bench) call(ctx context.Context, to cluster.NodeID, m host.Message, within time.Duration) (host.Message, error) {
	ctx, cancel := b.c.WithTimeout(ctx, within)
	defer cancel()
	return b.c.Call(ctx, to, m)
}

// word is the message of the suite: a name, and bytes that a sloppy copy would
// share.
type word struct {
	Name  string
	Bytes []byte
}

// Clone shares nothing.
func (w *word) Clone() host.Message {
	return &word{Name: w.Name, Bytes: append([]byte(nil), w.Bytes...)}
}

// API is the word's name.
func (w *word) API() string { return w.Name }

func say(name string, b ...byte) *word { return &word{Name: name, Bytes: b} }

// echo serves calls: "sleep" sleeps as many milliseconds as the first byte
// says, "park" never answers; every answer repeats the bytes.
func echo(ctx context.Context, h host.Host) {
	never := h.NewCond()
	h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
		w, _ := m.(*word)
		switch w.Name {
		case "sleep":
			if err := h.Sleep(ctx, time.Duration(w.Bytes[0])*time.Millisecond); err != nil {
				return nil, err
			}
		case "park":
			if err := never.Wait(ctx); err != nil {
				return nil, err
			}
		}
		return w, nil
	})
}
