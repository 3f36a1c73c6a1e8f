package real

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
)

// zkSession is a host.Session over go-zookeeper. Its fields are touched on the
// node's loop alone; everything that other goroutines know is the door's.
type zkSession struct {
	group   *kernel.Group
	door    *zkDoor
	id      int64
	state   host.SessionState
	leaving bool
	changed host.Cond
	forget  func() // ends the group's interest in the door
}

// dialZK opens a session behind the gate and parks until the server has granted
// it. If ctx ends first the attempt is given up.
func dialZK(ctx context.Context, gate *zkGate, servers []string, o host.SessionOptions) (host.Session, error) {
	group := kernel.Of(ctx).Group()
	s := &zkSession{group: group, changed: group.MakeCond()}
	post := func(f func()) { group.Kernel().Post(kernel.Func(f)) }
	s.door = newZKDoor(gate, post, s.moved)
	// The door is in the gate's hands before the first park: a kill finds it.
	if !gate.enter(s.door) {
		return nil, errZKShut
	}
	s.forget = group.OnDead(s.door.kill)
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	if err := s.door.open(servers, timeout, gate.log); err != nil {
		gate.leave(s.door)
		return nil, fmt.Errorf("dial zookeeper: %w", err)
	}
	for s.state == host.Disconnected {
		if err := s.changed.Wait(ctx); err != nil {
			s.door.abandon()
			return nil, err
		}
	}
	if err := notSent(s.state); s.state != host.Connected {
		return nil, fmt.Errorf("dial zookeeper: %w", err)
	}
	return s, nil
}

// moved follows the door's state, a moment behind it.
func (s *zkSession) moved(state host.SessionState, id int64) {
	s.state = state
	if id != 0 {
		s.id = id
	}
	s.changed.Broadcast()
	if final(state) {
		s.forget()
	}
}

// ID is the session's id.
func (s *zkSession) ID() int64 {
	s.group.Alive()
	return s.id
}

// State is what this side knows of the session.
func (s *zkSession) State() host.SessionState {
	s.group.Alive()
	return s.state
}

// Changed waits until the state differs from old.
func (s *zkSession) Changed(ctx context.Context, old host.SessionState) (host.SessionState, error) {
	for s.state == old {
		if err := s.changed.Wait(ctx); err != nil {
			return s.state, err
		}
	}
	return s.state, nil
}

// call sends one request and parks until it is answered. A call whose ctx ends
// goes on in the library until the connection ends; its answer is lost.
func (s *zkSession) call(ctx context.Context, what string, w *zkWatch, run func() (any, error)) (zkResult, error) {
	v, err := kernel.Await(ctx, what, func(complete func(any)) {
		if s.leaving {
			complete(zkResult{err: host.ErrClosed})
			return
		}
		s.door.submit(&zkCall{run: run, complete: complete, watch: w})
	})
	if err != nil {
		return zkResult{}, err
	}
	r, ok := v.(zkResult)
	if !ok {
		return zkResult{}, fmt.Errorf("%s: unexpected answer %T", what, v)
	}
	return r, r.err
}

// read is a call whose answer is a zkFound.
func (s *zkSession) read(ctx context.Context, what string, w *zkWatch, run func() (any, error)) (zkFound, error) {
	r, err := s.call(ctx, what, w, run)
	if f, ok := r.value.(zkFound); ok && err == nil {
		return f, nil
	}
	return zkFound{}, err
}

func (s *zkSession) watch(path string) *zkWatch {
	s.group.Alive()
	return &zkWatch{path: path, cond: s.group.MakeCond()}
}

// Get reads a node.
func (s *zkSession) Get(ctx context.Context, path string) ([]byte, host.Stat, error) {
	f, err := s.read(ctx, "get "+path, nil, func() (any, error) { return s.door.library.get(path, false) })
	return f.data, f.stat, err
}

// GetW reads a node and watches its data.
func (s *zkSession) GetW(ctx context.Context, path string) ([]byte, host.Stat, host.Watch, error) {
	w := s.watch(path)
	f, err := s.read(ctx, "get "+path, w, func() (any, error) { return s.door.library.get(path, true) })
	if err != nil {
		return nil, host.Stat{}, nil, err
	}
	return f.data, f.stat, w, nil
}

// Exists answers ErrNoNode for a missing node.
func (s *zkSession) Exists(ctx context.Context, path string) (host.Stat, error) {
	f, err := s.read(ctx, "exists "+path, nil, func() (any, error) { return s.door.library.exists(path, false) })
	return f.stat, err
}

// ExistsW watches a node, there or not.
func (s *zkSession) ExistsW(ctx context.Context, path string) (host.Stat, host.Watch, error) {
	w := s.watch(path)
	f, err := s.read(ctx, "exists "+path, w, func() (any, error) { return s.door.library.exists(path, true) })
	if err != nil && !errors.Is(err, host.ErrNoNode) {
		return host.Stat{}, nil, err
	}
	return f.stat, w, err
}

// Children lists a node's children by name.
func (s *zkSession) Children(ctx context.Context, path string) ([]string, host.Stat, error) {
	f, err := s.read(ctx, "children "+path, nil, func() (any, error) { return s.door.library.children(path, false) })
	slices.Sort(f.children)
	return f.children, f.stat, err
}

// ChildrenW lists a node's children and watches the list.
func (s *zkSession) ChildrenW(ctx context.Context, path string) ([]string, host.Stat, host.Watch, error) {
	w := s.watch(path)
	f, err := s.read(ctx, "children "+path, w, func() (any, error) { return s.door.library.children(path, true) })
	if err != nil {
		return nil, host.Stat{}, nil, err
	}
	slices.Sort(f.children)
	return f.children, f.stat, w, nil
}

// Create makes a node.
func (s *zkSession) Create(
	ctx context.Context, path string, data []byte, mode host.CreateMode,
) (name string, zxid int64, err error) {
	data = slices.Clone(data)
	r, err := s.call(ctx, "create "+path, nil, func() (any, error) { return s.door.library.create(path, data, mode) })
	if err != nil {
		return "", 0, err
	}
	name, _ = r.value.(string)
	return name, r.zxid, nil
}

// Set writes a node.
func (s *zkSession) Set(ctx context.Context, path string, data []byte, version int32) (host.Stat, error) {
	data = slices.Clone(data)
	r, err := s.call(ctx, "set "+path, nil, func() (any, error) { return s.door.library.set(path, data, version) })
	if err != nil {
		return host.Stat{}, err
	}
	stat, _ := r.value.(host.Stat)
	return stat, nil
}

// Delete removes a node.
func (s *zkSession) Delete(ctx context.Context, path string, version int32) (int64, error) {
	r, err := s.call(ctx, "delete "+path, nil, func() (any, error) { return s.door.library.delete(path, version) })
	if err != nil {
		return 0, err
	}
	return r.zxid, nil
}

// Multi does all or nothing.
func (s *zkSession) Multi(ctx context.Context, ops ...host.ZKOp) (host.MultiResult, error) {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Data = slices.Clone(ops[i].Data)
	}
	r, err := s.call(ctx, "multi", nil, func() (any, error) { return s.door.library.multi(ops) })
	result, ok := r.value.(host.MultiResult)
	if !ok {
		result = host.MultiResult{Failed: -1}
	}
	if err == nil || result.Failed >= 0 {
		result.Zxid = r.zxid
	}
	return result, err
}

// Sync waits until the server has caught up with its leader.
func (s *zkSession) Sync(ctx context.Context, path string) error {
	_, err := s.call(ctx, "sync "+path, nil, func() (any, error) { return s.door.library.sync(path) })
	return err
}

// Close ends the session at the server, if it can be reached within a second.
func (s *zkSession) Close(ctx context.Context) error {
	s.group.Alive()
	if s.leaving || final(s.state) {
		return nil
	}
	s.leaving = true
	_, err := kernel.Await(ctx, "close session", func(complete func(any)) {
		if !s.door.gate.spawn(func() { s.door.closing(); complete(nil) }) {
			complete(nil)
		}
	})
	return err
}

var _ host.Session = (*zkSession)(nil)
