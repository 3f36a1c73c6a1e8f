package node

import (
	"context"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// procDisk is the disk as one incarnation uses it.
type procDisk struct{ p *Process }

var _ host.Disk = procDisk{}

// take parks for as long as the disk takes. The effect comes after it, so that
// a kill in between leaves it undone.
func (d procDisk) take(ctx context.Context, cost time.Duration) (*disk, error) {
	d.p.Alive()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if cost > 0 {
		if err := d.p.Sleep(ctx, cost); err != nil {
			return nil, err
		}
	}
	return d.p.port.disk, nil
}

func (d procDisk) costs() *DiskCosts { return &d.p.port.core.cfg.Disk }

// Append adds to the end of a file.
func (d procDisk) Append(ctx context.Context, name string, b []byte) error {
	disk, err := d.take(ctx, d.costs().Write)
	if err != nil {
		return err
	}
	return disk.append(name, b)
}

// WriteFile replaces a file's content.
func (d procDisk) WriteFile(ctx context.Context, name string, b []byte) error {
	disk, err := d.take(ctx, d.costs().Write)
	if err != nil {
		return err
	}
	return disk.replace(name, b)
}

// Truncate cuts a file.
func (d procDisk) Truncate(ctx context.Context, name string, size int64) error {
	disk, err := d.take(ctx, d.costs().Write)
	if err != nil {
		return err
	}
	return disk.truncate(name, size)
}

// Sync makes what was written before the call durable.
func (d procDisk) Sync(ctx context.Context, name string) error {
	disk, err := d.take(ctx, d.p.port.disk.syncCost())
	if err != nil {
		return err
	}
	return disk.sync(name)
}

// ReadFile returns a copy of the content.
func (d procDisk) ReadFile(ctx context.Context, name string) ([]byte, error) {
	disk, err := d.take(ctx, d.costs().Read)
	if err != nil {
		return nil, err
	}
	return disk.read(name)
}

// Remove deletes a file, durably.
func (d procDisk) Remove(ctx context.Context, name string) error {
	disk, err := d.take(ctx, d.costs().Write)
	if err != nil {
		return err
	}
	return disk.remove(name)
}

// List names the files with a prefix.
func (d procDisk) List(ctx context.Context, prefix string) ([]string, error) {
	disk, err := d.take(ctx, d.costs().Read)
	if err != nil {
		return nil, err
	}
	return disk.list(prefix), nil
}
