package hosttest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

func diskCases() []testCase {
	return []testCase{
		{"files are written, read, cut, listed and removed", diskFiles},
		{"a kill keeps what was written, a power loss what was synced", diskLoss},
		{"a truncation that was not synced comes back", diskTruncation},
		{"a torn write keeps a part", diskTorn},
		{"a failing disk fails, a full one is full", diskFails},
		{"a slow disk is slow at sync, until the lease ends", diskSlow},
		{"a kill in the middle of a sync leaves it undone", diskKilledSync},
		{"a wiped disk is empty", diskWiped},
	}
}

// onDisk runs f as a node of its own and waits until it is through.
func (b *bench) onDisk(ctx context.Context, n host.Node, f *func(ctx context.Context, d host.Disk), do func(ctx context.Context, d host.Disk)) {
	b.t.Helper()
	before := len(b.heard())
	*f = do
	require.NoError(b.t, n.Start(ctx))
	b.until(ctx, "disk work done", func() bool { return len(b.heard()) > before && b.heard()[len(b.heard())-1] == "done" })
}

// disker makes a node whose program can be exchanged between incarnations.
func (b *bench) disker() (host.Node, *func(ctx context.Context, d host.Disk)) {
	var f func(ctx context.Context, d host.Disk)
	n := b.w.NewNode("a", func(ctx context.Context, h host.Host) {
		f(ctx, h.Disk())
		b.say("done")
	})
	return n, &f
}

func (b *bench) show(ctx context.Context, d host.Disk, names ...string) {
	for _, name := range names {
		data, err := d.ReadFile(ctx, name)
		if err != nil {
			b.say(name + ": " + err.Error())
			continue
		}
		b.say(fmt.Sprintf("%s: %s", name, data))
	}
}

func diskFiles(ctx context.Context, b *bench) {
	n, f := b.disker()
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) {
		_ = d.Append(ctx, "log/1", []byte("ab"))
		_ = d.Append(ctx, "log/1", []byte("cd"))
		content := []byte("meta")
		_ = d.WriteFile(ctx, "meta", content)
		content[0] = 'X'
		_ = d.Append(ctx, "log/0", nil)
		b.show(ctx, d, "log/1", "meta", "log/0", "none")
		_ = d.Truncate(ctx, "log/1", 3)
		_ = d.Append(ctx, "log/1", []byte("e"))
		b.show(ctx, d, "log/1")
		read, _ := d.ReadFile(ctx, "meta")
		read[0] = 'Y'
		names, _ := d.List(ctx, "log/")
		b.say(fmt.Sprint(names))
		_ = d.Remove(ctx, "log/0")
		b.show(ctx, d, "log/0", "meta")
		b.say(fmt.Sprint(d.Truncate(ctx, "none", 0), ", ", d.Sync(ctx, "none"), ", ", d.Remove(ctx, "none")))
	})
	require.Equal(b.t, []string{
		"log/1: abcd", "meta: meta", "log/0: ", "none: no such file", "log/1: abce", "[log/0 log/1]",
		"log/0: no such file", "meta: meta", "no such file, no such file, no such file", "done",
	}, b.heard())
}

func diskLoss(ctx context.Context, b *bench) {
	n, f := b.disker()
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) {
		_ = d.Append(ctx, "log", []byte("1"))
		_ = d.Sync(ctx, "log")
		_ = d.Append(ctx, "log", []byte("2"))
		_ = d.WriteFile(ctx, "meta", []byte("old"))
		_ = d.Sync(ctx, "meta")
		_ = d.WriteFile(ctx, "meta", []byte("new"))
		_ = d.Append(ctx, "young", []byte("x"))
	})
	require.NoError(b.t, n.Kill(ctx))
	look := func(ctx context.Context, d host.Disk) { b.show(ctx, d, "log", "meta", "young") }
	b.onDisk(ctx, n, f, look)
	require.NoError(b.t, n.PowerLoss(ctx))
	b.onDisk(ctx, n, f, look)
	require.Equal(b.t, []string{
		"done", "log: 12", "meta: new", "young: x",
		"done", "log: 1", "meta: old", "young: no such file", "done",
	}, b.heard())
}

func diskTruncation(ctx context.Context, b *bench) {
	n, f := b.disker()
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) {
		_ = d.Append(ctx, "log", []byte("1234"))
		_ = d.Sync(ctx, "log")
		_ = d.Truncate(ctx, "log", 2)
		_ = d.Append(ctx, "log", []byte("XY"))
	})
	require.NoError(b.t, n.PowerLoss(ctx))
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) {
		b.show(ctx, d, "log")
		_ = d.Truncate(ctx, "log", 2)
		_ = d.Append(ctx, "log", []byte("ZZ"))
		_ = d.Sync(ctx, "log")
	})
	require.NoError(b.t, n.PowerLoss(ctx))
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) { b.show(ctx, d, "log") })
	require.Equal(b.t, []string{"done", "log: 1234", "done", "log: 12ZZ", "done"}, b.heard())
}

func diskTorn(ctx context.Context, b *bench) {
	n, f := b.disker()
	b.w.Disk("a").Torn(true)
	lengths := map[int]bool{}
	for range 40 {
		b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) {
			_ = d.WriteFile(ctx, "log", []byte("synced"))
			_ = d.Sync(ctx, "log")
			_ = d.Append(ctx, "log", []byte("-one"))
			_ = d.Append(ctx, "log", []byte("-two"))
		})
		require.NoError(b.t, n.PowerLoss(ctx))
		b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) { b.show(ctx, d, "log") })
		require.NoError(b.t, n.Kill(ctx))
		heard := b.heard()
		left := heard[len(heard)-2][len("log: "):]
		require.Contains(b.t, "synced-one-two", left)
		require.GreaterOrEqual(b.t, len(left), len("synced"))
		lengths[len(left)] = true
	}
	require.Greater(b.t, len(lengths), 3)
}

func diskFails(ctx context.Context, b *bench) {
	n, f := b.disker()
	undo := b.w.Disk("a").Fail(1, false, time.Hour)
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) {
		b.say(fmt.Sprint(d.Append(ctx, "log", []byte("x"))))
	})
	undo()
	require.NoError(b.t, n.Kill(ctx))
	undo = b.w.Disk("a").Fail(1, true, time.Hour)
	defer undo()
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) {
		b.say(fmt.Sprint(d.WriteFile(ctx, "log", []byte("x"))))
		b.show(ctx, d, "log")
	})
	require.Equal(b.t, []string{
		host.ErrDiskIO.Error(), "done", host.ErrDiskFull.Error(), "log: no such file", "done",
	}, b.heard())
}

func diskSlow(ctx context.Context, b *bench) {
	var took [2]time.Duration
	n := b.w.NewNode("a", func(ctx context.Context, h host.Host) {
		for i := range took {
			_ = h.Disk().Append(ctx, "log", []byte("x"))
			before := h.Now()
			_ = h.Disk().Sync(ctx, "log")
			took[i] = h.Now() - before
		}
		b.say("done")
	})
	b.w.Disk("a").Slow(300*time.Millisecond, 200*time.Millisecond)
	require.NoError(b.t, n.Start(ctx))
	b.until(ctx, "synced twice", func() bool { return len(b.heard()) == 1 })
	require.GreaterOrEqual(b.t, took[0], 300*time.Millisecond)
	require.Less(b.t, took[1], 300*time.Millisecond)
}

func diskKilledSync(ctx context.Context, b *bench) {
	n, f := b.disker()
	undo := b.w.Disk("a").Slow(time.Hour, time.Hour)
	*f = func(ctx context.Context, d host.Disk) {
		_ = d.Append(ctx, "log", []byte("x"))
		_ = d.Sync(ctx, "log")
	}
	require.NoError(b.t, n.Start(ctx))
	b.rest(ctx)
	require.NoError(b.t, n.PowerLoss(ctx))
	undo()
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) { b.show(ctx, d, "log") })
	require.Equal(b.t, []string{"log: no such file", "done"}, b.heard())
}

func diskWiped(ctx context.Context, b *bench) {
	n, f := b.disker()
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) {
		_ = d.Append(ctx, "log", []byte("x"))
		_ = d.Sync(ctx, "log")
	})
	require.NoError(b.t, n.Kill(ctx))
	b.w.Disk("a").Wipe()
	b.onDisk(ctx, n, f, func(ctx context.Context, d host.Disk) { b.show(ctx, d, "log") })
	require.Equal(b.t, []string{"done", "log: no such file", "done"}, b.heard())
}
