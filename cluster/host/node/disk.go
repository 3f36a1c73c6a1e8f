package node

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// DiskCosts are what a disk's calls take. Zero costs do not park.
type DiskCosts struct {
	Sync  time.Duration // each Sync
	Write time.Duration // each Append, WriteFile, Truncate, Remove
	Read  time.Duration // each ReadFile, List
	// Size is the number of bytes that fit, 0 = no bound.
	Size int64
}

// disk is a node's files. Its kernel's goroutine works on it; the harness sets
// faults from another, hence the lock.
type disk struct {
	mu     sync.Mutex
	rand   *rand.Rand
	costs  DiskCosts
	now    func() time.Duration
	files  map[string]*file
	used   int64
	torn   bool
	nextID uint64
	slow   []diskFault
	fail   []diskFault
}

// diskFault is a fault under a lease.
type diskFault struct {
	id    uint64
	until time.Duration
	add   time.Duration
	p     float64
	full  bool
}

// file is the content as the process sees it, what a power loss would leave,
// and the changes between the two.
type file struct {
	data    []byte
	durable []byte
	synced  bool // durable exists; else the file would vanish
	pending []change
}

// change is one write that is not synced: an append of b, or a new content.
type change struct {
	replace bool
	b       []byte
}

func newDisk(r *rand.Rand, costs DiskCosts, now func() time.Duration) *disk {
	return &disk{rand: r, costs: costs, now: now, files: make(map[string]*file)}
}

var _ host.DiskControl = (*disk)(nil)

// Slow adds d to every sync.
func (d *disk) Slow(add, lease time.Duration) host.Undo {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nextID++
	d.slow = append(d.slow, diskFault{id: d.nextID, until: d.now() + lease, add: add})
	return d.undo(&d.slow, d.nextID)
}

// Fail makes a share of writes and syncs fail.
func (d *disk) Fail(p float64, full bool, lease time.Duration) host.Undo {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nextID++
	d.fail = append(d.fail, diskFault{id: d.nextID, until: d.now() + lease, p: p, full: full})
	return d.undo(&d.fail, d.nextID)
}

func (d *disk) undo(list *[]diskFault, id uint64) host.Undo {
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		*list = slices.DeleteFunc(*list, func(f diskFault) bool { return f.id == id })
	}
}

// Torn lets a power loss keep a random part of what was not synced.
func (d *disk) Torn(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.torn = on
}

// Wipe loses every file.
func (d *disk) Wipe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = make(map[string]*file)
	d.used = 0
}

// syncCost is what a sync takes now.
func (d *disk) syncCost() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	cost := d.costs.Sync
	if len(d.slow) == 0 {
		return cost
	}
	now := d.now()
	d.slow = slices.DeleteFunc(d.slow, func(f diskFault) bool { return f.until <= now })
	for _, f := range d.slow {
		cost += f.add
	}
	return cost
}

// failure is the error that a write or sync gets now, drawn.
func (d *disk) failure() error {
	if len(d.fail) == 0 {
		return nil
	}
	now := d.now()
	d.fail = slices.DeleteFunc(d.fail, func(f diskFault) bool { return f.until <= now })
	for _, f := range d.fail {
		if f.p >= 1 || f.p > 0 && d.rand.Float64() < f.p {
			if f.full {
				return host.ErrDiskFull
			}
			return host.ErrDiskIO
		}
	}
	return nil
}

func (d *disk) append(name string, b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.room(int64(len(b))); err != nil {
		return err
	}
	f := d.file(name)
	f.data = append(f.data, b...)
	f.pending = append(f.pending, change{b: f.data[len(f.data)-len(b) : len(f.data) : len(f.data)]})
	d.used += int64(len(b))
	return nil
}

func (d *disk) replace(name string, b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := 0
	if f := d.files[name]; f != nil {
		old = len(f.data)
	}
	if err := d.room(int64(len(b) - old)); err != nil {
		return err
	}
	f := d.file(name)
	d.used += int64(len(b) - len(f.data))
	f.data = slices.Clone(b)
	f.pending = append(f.pending, change{replace: true, b: slices.Clip(f.data)})
	return nil
}

func (d *disk) truncate(name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		return host.ErrNoFile
	}
	if err := d.failure(); err != nil {
		return err
	}
	if size >= int64(len(f.data)) {
		return nil
	}
	d.used -= int64(len(f.data)) - size
	// A copy: what stood behind the cut may still be what a power loss leaves.
	f.data = slices.Clone(f.data[:size])
	f.pending = append(f.pending, change{replace: true, b: slices.Clip(f.data)})
	return nil
}

func (d *disk) sync(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		return host.ErrNoFile
	}
	if err := d.failure(); err != nil {
		return err
	}
	f.durable, f.synced = slices.Clip(f.data), true
	clear(f.pending)
	f.pending = f.pending[:0]
	return nil
}

func (d *disk) read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		return nil, host.ErrNoFile
	}
	return append([]byte{}, f.data...), nil
}

// remove is durable at once.
func (d *disk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		return host.ErrNoFile
	}
	if err := d.failure(); err != nil {
		return err
	}
	d.used -= int64(len(f.data))
	delete(d.files, name)
	return nil
}

func (d *disk) list(prefix string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := []string{}
	for name := range d.files {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// room draws a failure and checks that more bytes fit.
func (d *disk) room(more int64) error {
	if err := d.failure(); err != nil {
		return err
	}
	if d.costs.Size > 0 && d.used+more > d.costs.Size {
		return host.ErrDiskFull
	}
	return nil
}

func (d *disk) file(name string) *file {
	f := d.files[name]
	if f == nil {
		f = &file{data: []byte{}}
		d.files[name] = f
	}
	return f
}

// powerLoss leaves what was synced, and, if writes tear, a random prefix of the
// changes after it, the last of them cut anywhere if it is an append.
func (d *disk) powerLoss() {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make([]string, 0, len(d.files))
	for name := range d.files {
		names = append(names, name)
	}
	slices.Sort(names) // the draws below follow this order
	d.used = 0
	for _, name := range names {
		f := d.files[name]
		if d.torn && len(f.pending) > 0 {
			d.tear(f)
		}
		if !f.synced {
			delete(d.files, name)
			continue
		}
		f.data = slices.Clone(f.durable)
		f.durable = slices.Clip(f.data)
		f.pending = nil
		d.used += int64(len(f.data))
	}
}

func (d *disk) tear(f *file) {
	keep := d.rand.IntN(len(f.pending) + 1)
	left := slices.Clone(f.durable)
	for _, c := range f.pending[:keep] {
		if c.replace {
			left = slices.Clone(c.b)
		} else {
			left = append(left, c.b...)
		}
	}
	if keep < len(f.pending) && !f.pending[keep].replace {
		b := f.pending[keep].b
		left = append(left, b[:d.rand.IntN(len(b)+1)]...)
		keep++
	}
	if keep > 0 {
		f.durable, f.synced = left, true
	}
}
