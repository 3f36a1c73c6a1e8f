package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// The methods of zkClient that make it a host.Session. What a request carries
// is copied on its way to the server, and what an answer carries on its way
// back.

// ID is the session's id.
func (c *zkClient) ID() int64 {
	c.group.Alive()
	return c.id
}

// State is what this side knows of the session.
func (c *zkClient) State() host.SessionState {
	c.group.Alive()
	return c.state
}

// Changed waits until the state differs from old.
func (c *zkClient) Changed(ctx context.Context, old host.SessionState) (host.SessionState, error) {
	for c.state == old {
		if err := c.changed.Wait(ctx); err != nil {
			return c.state, err
		}
	}
	return c.state, nil
}

// call sends one request and parks until it is answered. The answer to a call
// whose ctx ends is lost.
func (c *zkClient) call(ctx context.Context, what string, call *zkCall) (zkAnswer, error) {
	c.group.Alive()
	v, err := kernel.Await(ctx, what, func(complete func(any)) {
		switch {
		case c.leaving:
			complete(zkAnswer{err: host.ErrClosed})
		case c.state != host.Connected:
			complete(zkAnswer{err: zkNotSent(c.state)})
		default:
			call.complete = complete
			c.send(call)
		}
	})
	if err != nil {
		return zkAnswer{}, err
	}
	a, _ := v.(zkAnswer)
	return a, a.err
}

func (c *zkClient) watch(path string) *zkWatch { return &zkWatch{path: path, cond: c.group.MakeCond()} }

// readPath asks for a path and leaves w there, if not nil.
func (c *zkClient) readPath(ctx context.Context, op jute.OpCode, path string, w *zkWatch) (jute.Record, error) {
	if !tree.ValidPath(path) {
		return nil, host.ErrBadArguments
	}
	call := &zkCall{op: op, req: &jute.PathWatchRequest{Path: path, Watch: w != nil}, watch: w}
	a, err := c.call(ctx, zkOpName(op)+" "+path, call)
	return a.body, err
}

// Get reads a node.
func (c *zkClient) Get(ctx context.Context, path string) ([]byte, host.Stat, error) {
	return c.get(ctx, path, nil)
}

func (c *zkClient) get(ctx context.Context, path string, w *zkWatch) ([]byte, host.Stat, error) {
	body, err := c.readPath(ctx, jute.OpGetData, path, w)
	r, ok := body.(*jute.GetDataResponse)
	if err != nil || !ok {
		return nil, host.Stat{}, err
	}
	return slices.Clone(r.Data), zkStat(r.Stat), nil
}

// GetW reads a node and watches its data.
func (c *zkClient) GetW(ctx context.Context, path string) ([]byte, host.Stat, host.Watch, error) {
	w := c.watch(path)
	data, stat, err := c.get(ctx, path, w)
	if err != nil {
		return nil, host.Stat{}, nil, err
	}
	return data, stat, w, nil
}

// Exists answers ErrNoNode for a missing node.
func (c *zkClient) Exists(ctx context.Context, path string) (host.Stat, error) {
	return c.exists(ctx, path, nil)
}

func (c *zkClient) exists(ctx context.Context, path string, w *zkWatch) (host.Stat, error) {
	body, err := c.readPath(ctx, jute.OpExists, path, w)
	if r, ok := body.(*jute.StatResponse); ok && err == nil {
		return zkStat(r.Stat), nil
	}
	return host.Stat{}, err
}

// ExistsW watches a node, there or not.
func (c *zkClient) ExistsW(ctx context.Context, path string) (host.Stat, host.Watch, error) {
	w := c.watch(path)
	stat, err := c.exists(ctx, path, w)
	if err != nil && err != host.ErrNoNode { //nolint:errorlint // the sentinel itself is what zkError returns
		return host.Stat{}, nil, err
	}
	return stat, w, err
}

// Children lists a node's children by name.
func (c *zkClient) Children(ctx context.Context, path string) ([]string, host.Stat, error) {
	return c.children(ctx, path, nil)
}

func (c *zkClient) children(ctx context.Context, path string, w *zkWatch) ([]string, host.Stat, error) {
	body, err := c.readPath(ctx, jute.OpGetChildren2, path, w)
	r, ok := body.(*jute.Children2Response)
	if err != nil || !ok {
		return nil, host.Stat{}, err
	}
	return slices.Clone(r.Children), zkStat(r.Stat), nil
}

// ChildrenW lists a node's children and watches the list.
func (c *zkClient) ChildrenW(ctx context.Context, path string) ([]string, host.Stat, host.Watch, error) {
	w := c.watch(path)
	names, stat, err := c.children(ctx, path, w)
	if err != nil {
		return nil, host.Stat{}, nil, err
	}
	return names, stat, w, nil
}

// Create makes a node.
func (c *zkClient) Create(
	ctx context.Context, path string, data []byte, mode host.CreateMode,
) (name string, zxid int64, err error) {
	if !zkCreatable(path, mode) {
		return "", 0, host.ErrBadArguments
	}
	op, flags := zkCreate(mode)
	req := &jute.CreateRequest{Path: path, Data: slices.Clone(data), ACL: jute.OpenACL(), Flags: flags}
	a, err := c.call(ctx, "create "+path, &zkCall{op: op, req: req})
	if err != nil {
		return "", 0, err
	}
	return zkName(a.body), a.zxid, nil
}

// zkCreatable checks a path as the library does, before anything is sent.
func zkCreatable(path string, mode host.CreateMode) bool {
	if mode == host.PersistentSequential || mode == host.EphemeralSequential {
		path += "0"
	}
	return tree.ValidPath(path)
}

func zkCreate(mode host.CreateMode) (op jute.OpCode, flags int32) {
	switch mode {
	case host.Ephemeral:
		return jute.OpCreate, jute.FlagEphemeral
	case host.PersistentSequential:
		return jute.OpCreate, jute.FlagPersistentSequential
	case host.EphemeralSequential:
		return jute.OpCreate, jute.FlagEphemeralSequential
	case host.Container:
		return jute.OpCreateContainer, jute.FlagContainer
	default:
		return jute.OpCreate, jute.FlagPersistent
	}
}

// zkName is the name of the node that a create made, or "".
func zkName(body jute.Record) string {
	switch r := body.(type) {
	case *jute.PathResponse:
		return r.Path
	case *jute.Create2Response:
		return r.Path
	default:
		return ""
	}
}

// Set writes a node.
func (c *zkClient) Set(ctx context.Context, path string, data []byte, version int32) (host.Stat, error) {
	if !tree.ValidPath(path) {
		return host.Stat{}, host.ErrBadArguments
	}
	req := &jute.SetDataRequest{Path: path, Data: slices.Clone(data), Version: version}
	a, err := c.call(ctx, "set "+path, &zkCall{op: jute.OpSetData, req: req})
	if r, ok := a.body.(*jute.StatResponse); ok && err == nil {
		return zkStat(r.Stat), nil
	}
	return host.Stat{}, err
}

// Delete removes a node.
func (c *zkClient) Delete(ctx context.Context, path string, version int32) (int64, error) {
	if !tree.ValidPath(path) {
		return 0, host.ErrBadArguments
	}
	req := &jute.PathVersionRequest{Path: path, Version: version}
	a, err := c.call(ctx, "delete "+path, &zkCall{op: jute.OpDelete, req: req})
	if err != nil {
		return 0, err
	}
	return a.zxid, nil
}

// Multi does all or nothing.
func (c *zkClient) Multi(ctx context.Context, ops ...host.ZKOp) (host.MultiResult, error) {
	res := host.MultiResult{Failed: -1}
	req := &jute.MultiRequest{Ops: make([]jute.MultiOp, 0, len(ops))}
	for _, o := range ops {
		if !strings.HasPrefix(o.Path, "/") || o.Mode == host.Container {
			return res, host.ErrBadArguments
		}
		req.Ops = append(req.Ops, zkMultiOp(o))
	}
	a, err := c.call(ctx, "multi", &zkCall{op: jute.OpMulti, req: req})
	r, ok := a.body.(*jute.MultiResponse)
	if !ok {
		return res, err
	}
	res.Zxid = a.zxid
	res.Names, res.Stats = make([]string, len(ops)), make([]host.Stat, len(ops))
	for i, one := range r.Results {
		if one.Err != jute.OK && res.Failed < 0 {
			res.Failed = i
		}
		res.Names[i] = zkName(one.Response)
		if s, set := one.Response.(*jute.StatResponse); set {
			res.Stats[i] = zkStat(s.Stat)
		}
	}
	return res, err
}

func zkMultiOp(o host.ZKOp) jute.MultiOp {
	switch o.Kind {
	case host.OpCreate:
		op, flags := zkCreate(o.Mode)
		return jute.MultiOp{Op: op, Request: &jute.CreateRequest{
			Path: o.Path, Data: slices.Clone(o.Data), ACL: jute.OpenACL(), Flags: flags,
		}}
	case host.OpSet:
		return jute.MultiOp{Op: jute.OpSetData, Request: &jute.SetDataRequest{
			Path: o.Path, Data: slices.Clone(o.Data), Version: o.Version,
		}}
	case host.OpDelete:
		return jute.MultiOp{Op: jute.OpDelete, Request: &jute.PathVersionRequest{Path: o.Path, Version: o.Version}}
	default:
		return jute.MultiOp{Op: jute.OpCheck, Request: &jute.PathVersionRequest{Path: o.Path, Version: o.Version}}
	}
}

// Sync waits until the server has caught up with its leader.
func (c *zkClient) Sync(ctx context.Context, path string) error {
	_, err := c.call(ctx, "sync "+path, &zkCall{op: jute.OpSync, req: &jute.PathRequest{Path: path}})
	return err
}

// zkCloseWait is how long a close waits for the server.
const zkCloseWait = time.Second

// Close ends the session at the server, if it can be reached within a second.
func (c *zkClient) Close(ctx context.Context) error {
	c.group.Alive()
	if c.leaving || zkFinal(c.state) {
		return nil
	}
	c.leaving = true
	_, err := kernel.Await(ctx, "close session", func(complete func(any)) {
		done := false
		finish := func(any) {
			if !done {
				done = true
				c.finish(host.Closed)
				complete(nil)
			}
		}
		if c.state == host.Connected {
			c.send(&zkCall{op: jute.OpCloseSession, req: &jute.NoBody{}, complete: finish})
		}
		c.zk.k.After(zkCloseWait, kernel.Func(func() { finish(nil) }))
	})
	return err
}

func zkStat(s jute.Stat) host.Stat {
	return host.Stat{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid, Version: s.Version, Cversion: s.Cversion,
		EphemeralOwner: s.EphemeralOwner, DataLength: s.DataLength, NumChildren: s.NumChildren,
		CtimeMillis: s.Ctime, MtimeMillis: s.Mtime,
	}
}

var _ host.Session = (*zkClient)(nil)
