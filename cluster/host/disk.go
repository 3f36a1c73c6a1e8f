package host

import (
	"context"
	"errors"
	"time"
)

// Disk is a node's disk: named files of bytes that outlive incarnations. What
// was written and not synced survives a kill and is lost, or torn, at power
// loss. All calls park (p) as long as the disk takes.
type Disk interface {
	// Append adds to the end of a file, creating it.
	Append(ctx context.Context, name string, b []byte) error
	// WriteFile replaces a file's content in one step, once synced.
	WriteFile(ctx context.Context, name string, b []byte) error
	// Truncate cuts a file to size bytes.
	Truncate(ctx context.Context, name string, size int64) error
	// Sync makes everything written to the file so far durable.
	Sync(ctx context.Context, name string) error
	// ReadFile returns a copy of the content; ErrNoFile if there is none.
	ReadFile(ctx context.Context, name string) ([]byte, error)
	Remove(ctx context.Context, name string) error
	// List names all files that begin with prefix, sorted.
	List(ctx context.Context, prefix string) ([]string, error)
}

// The errors of disks.
var (
	ErrNoFile   = errors.New("no such file")
	ErrDiskFull = errors.New("disk full")
	ErrDiskIO   = errors.New("disk input/output error")
)

// DiskControl is the harness's hand on a node's disk. Each fault is a lease.
type DiskControl interface {
	// Slow adds d to every sync.
	Slow(d time.Duration, lease time.Duration) Undo
	// Fail makes a share p of writes and syncs fail with ErrDiskIO, or
	// ErrDiskFull if full.
	Fail(p float64, full bool, lease time.Duration) Undo
	// Torn lets a power loss keep a random part of what was not synced.
	Torn(on bool)
	// Wipe loses the disk for good; the node must be down.
	Wipe()
}

// Undo ends a lease early. It may be called more than once.
type Undo func()
