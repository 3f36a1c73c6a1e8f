package tree

import (
	"fmt"
	"slices"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// NoRecord takes the place of a request that the real server fails on before
// it has taken a zxid, though its kind takes one otherwise.
type NoRecord struct{ jute.NoBody }

// write carries out a transaction. Everything that decodes takes a zxid, also
// when it fails; of what does not decode only a multi takes one.
func (t *Tree) write(r *request, op jute.OpCode, req jute.Record) Reply {
	_, early := req.(*NoRecord)
	if req == nil || early {
		rep := failed(jute.MarshallingError)
		if op == jute.OpMulti && !early {
			rep.Txn = Txn{Zxid: t.next(), Err: jute.MarshallingError}
		}
		return rep
	}
	r.zxid = t.next()
	if m, ok := req.(*jute.MultiRequest); ok {
		return t.multi(r, m)
	}
	path, body, code := t.apply(r, op, req)
	rep := Reply{Header: jute.ReplyHeader{Err: code}, Body: body}
	rep.Txn = Txn{Zxid: r.zxid, Paths: []string{path}, Err: code}
	if code == jute.OK {
		t.run(r)
	}
	return rep
}

// apply does one operation of a transaction: all checks first, in the order of
// the real server, then the change. It returns the path concerned.
func (t *Tree) apply(r *request, op jute.OpCode, req jute.Record) (string, jute.Record, jute.Code) {
	switch req := req.(type) {
	case *jute.CreateRequest:
		return t.create(r, op, req)
	case *jute.PathVersionRequest:
		if op == jute.OpCheck {
			return req.Path, &jute.NoBody{}, t.check(r, req)
		}
		return req.Path, nil, t.delete(r, req)
	case *jute.SetDataRequest:
		body, code := t.setData(r, req)
		return req.Path, body, code
	case *jute.SetACLRequest:
		body, code := t.setACL(r, req)
		return req.Path, body, code
	case *jute.PathRequest:
		return req.Path, nil, t.deleteContainer(r, req.Path)
	case *jute.ReconfigRequest:
		return "/zookeeper/config", nil, jute.ReconfigDisabled
	default:
		return "", nil, jute.MarshallingError
	}
}

func (r *request) auth() []jute.ID {
	if r.conn == nil {
		return nil
	}
	return r.conn.auth
}

// restore registers how to take a change back, in multis only.
func (r *request) restore(f func()) {
	if r.multi {
		r.undo = append(r.undo, f)
	}
}

// modes are the properties of a create's flags.
func modes(flags int32) (ephemeral, sequential, ttl bool, code jute.Code) {
	switch flags {
	case jute.FlagPersistent, jute.FlagContainer:
		return false, false, false, jute.OK
	case jute.FlagEphemeral:
		return true, false, false, jute.OK
	case jute.FlagPersistentSequential:
		return false, true, false, jute.OK
	case jute.FlagEphemeralSequential:
		return true, true, false, jute.OK
	case jute.FlagPersistentTTL:
		return false, false, true, jute.OK
	case jute.FlagPersistentSequentialTTL:
		return false, true, true, jute.OK
	default:
		return false, false, false, jute.BadArguments
	}
}

func (t *Tree) create(r *request, op jute.OpCode, req *jute.CreateRequest) (string, jute.Record, jute.Code) {
	ephemeral, sequential, ttl, code := modes(req.Flags)
	if code != jute.OK {
		return req.Path, nil, code
	}
	if code := t.checkTTL(op, req, ttl); code != jute.OK {
		return req.Path, nil, code
	}
	parentPath, _, code := split(req.Path)
	if code != jute.OK {
		return req.Path, nil, code
	}
	acl, code := fixACL(req.ACL, r.auth())
	if code != jute.OK {
		return req.Path, nil, code
	}
	parent := t.node(parentPath)
	if parent == nil {
		return req.Path, nil, jute.NoNode
	}
	if !t.allowed(parent.acl, jute.PermCreate, r.auth()) {
		return req.Path, nil, jute.NoAuth
	}
	path := req.Path
	if sequential {
		path += fmt.Sprintf("%010d", parent.creates)
	}
	switch {
	case !ValidPath(path):
		return path, nil, jute.BadArguments
	case t.node(path) != nil:
		return path, nil, jute.NodeExists
	case parent.ephemeral():
		return path, nil, jute.NoChildrenForEphemerals
	}
	n := &node{
		data: req.Data, acl: acl,
		czxid: r.zxid, mzxid: r.zxid, pzxid: r.zxid, ctime: r.now, mtime: r.now,
	}
	switch {
	case op == jute.OpCreateContainer:
		n.owner = containerOwner
	case op == jute.OpCreateTTL:
		n.owner = ttlMask | req.TTL
	case ephemeral:
		n.owner = r.session.id
	}
	r.notOwn = r.notOwn || n.owner != r.session.id
	t.link(r, path, parent, n)
	if op == jute.OpCreate {
		return path, &jute.PathResponse{Path: path}, jute.OK
	}
	return path, &jute.Create2Response{Path: path, Stat: n.stat()}, jute.OK
}

func (t *Tree) checkTTL(op jute.OpCode, req *jute.CreateRequest, ttl bool) jute.Code {
	value := int64(-1)
	if op == jute.OpCreateTTL {
		value = req.TTL
	}
	switch {
	case ttl && !t.opts.ExtendedTypes:
		return jute.Unimplemented
	case ttl && (value <= 0 || value > maxTTL):
		return jute.BadArguments
	case !ttl && (value >= 0 || op == jute.OpCreateTTL):
		return jute.BadArguments
	default:
		return jute.OK
	}
}

// link puts a node into the tree.
func (t *Tree) link(r *request, path string, parent, n *node) {
	_, name, _ := split(path)
	creates, pzxid := parent.creates, parent.pzxid
	parent.children = insert(parent.children, name)
	parent.creates++
	parent.pzxid = r.zxid
	t.nodes[path] = n
	t.dataSize += int64(len(path) + len(n.data))
	t.owned(path, n, true)
	r.triggers = append(r.triggers, trigger{jute.EventNodeCreated, path, n.acl, parent.acl})
	r.restore(func() {
		t.owned(path, n, false)
		t.dataSize -= int64(len(path) + len(n.data))
		delete(t.nodes, path)
		parent.children = remove(parent.children, name)
		parent.creates, parent.pzxid = creates, pzxid
	})
}

// owned keeps the lists of nodes that somebody else may remove.
func (t *Tree) owned(path string, n *node, there bool) {
	var set map[string]struct{}
	switch {
	case n.owner == 0:
		return
	case n.owner == containerOwner:
		set = t.containers
	case isTTL(n.owner):
		set = t.ttls
	default:
		t.ownedBySession(path, n, there)
		return
	}
	if there {
		set[path] = struct{}{}
	} else {
		delete(set, path)
	}
}

func (t *Tree) ownedBySession(path string, n *node, there bool) {
	if there {
		t.ephemerals++
	} else {
		t.ephemerals--
	}
	s := t.sessions[n.owner]
	switch {
	case s == nil:
	case there:
		s.ephemerals = insert(s.ephemerals, path)
	default:
		s.ephemerals = remove(s.ephemerals, path)
	}
}

// unlink takes a node out of the tree.
func (t *Tree) unlink(r *request, path, name string, parent, n *node) {
	pzxid := parent.pzxid
	parent.children = remove(parent.children, name)
	parent.pzxid = r.zxid
	delete(t.nodes, path)
	t.dataSize -= int64(len(path) + len(n.data))
	t.owned(path, n, false)
	r.triggers = append(r.triggers, trigger{jute.EventNodeDeleted, path, n.acl, parent.acl})
	r.restore(func() {
		t.owned(path, n, true)
		t.dataSize += int64(len(path) + len(n.data))
		t.nodes[path] = n
		parent.children = insert(parent.children, name)
		parent.pzxid = pzxid
	})
}

func (t *Tree) delete(r *request, req *jute.PathVersionRequest) jute.Code {
	parentPath, name, code := split(req.Path)
	if code != jute.OK || special(req.Path) {
		return jute.BadArguments
	}
	parent := t.node(parentPath)
	if parent == nil {
		return jute.NoNode
	}
	if !t.allowed(parent.acl, jute.PermDelete, r.auth()) {
		return jute.NoAuth
	}
	n := t.node(req.Path)
	switch {
	case n == nil:
		return jute.NoNode
	case !fits(n.version, req.Version):
		return jute.BadVersion
	case len(n.children) > 0:
		return jute.NotEmpty
	}
	r.notOwn = r.notOwn || n.owner != r.session.id
	t.unlink(r, req.Path, name, parent, n)
	return jute.OK
}

// deleteContainer is what the sweeper sends; the real server takes it from
// clients too, and then removes any empty node that is not an ephemeral.
func (t *Tree) deleteContainer(r *request, path string) jute.Code {
	parentPath, name, code := split(path)
	if code != jute.OK || special(path) {
		return jute.BadArguments
	}
	n := t.node(path)
	switch {
	case n == nil:
		return jute.NoNode
	case len(n.children) > 0:
		return jute.NotEmpty
	case n.ephemeral():
		return jute.BadVersion
	}
	r.notOwn = true
	t.unlink(r, path, name, t.node(parentPath), n)
	return jute.OK
}

func fits(version, expected int32) bool { return expected == -1 || expected == version }

func (t *Tree) setData(r *request, req *jute.SetDataRequest) (jute.Record, jute.Code) {
	if !ValidPath(req.Path) {
		return nil, jute.BadArguments
	}
	n := t.node(req.Path)
	switch {
	case n == nil:
		return nil, jute.NoNode
	case !t.allowed(n.acl, jute.PermWrite, r.auth()):
		return nil, jute.NoAuth
	case !fits(n.version, req.Version):
		return nil, jute.BadVersion
	}
	r.notOwn = r.notOwn || n.owner != r.session.id
	if r.multi {
		data, version, mtime, mzxid := n.data, n.version, n.mtime, n.mzxid
		r.restore(func() {
			t.dataSize += int64(len(data) - len(n.data))
			n.data, n.version, n.mtime, n.mzxid = data, version, mtime, mzxid
		})
	}
	t.dataSize += int64(len(req.Data) - len(n.data))
	n.data = req.Data
	n.version++
	n.mtime, n.mzxid = r.now, r.zxid
	r.triggers = append(r.triggers, trigger{jute.EventNodeDataChanged, req.Path, n.acl, nil})
	return &jute.StatResponse{Stat: n.stat()}, jute.OK
}

func (t *Tree) setACL(r *request, req *jute.SetACLRequest) (jute.Record, jute.Code) {
	if !ValidPath(req.Path) {
		return nil, jute.BadArguments
	}
	acl, code := fixACL(req.ACL, r.auth())
	if code != jute.OK {
		return nil, code
	}
	n := t.node(req.Path)
	switch {
	case n == nil:
		return nil, jute.NoNode
	case !t.allowed(n.acl, jute.PermAdmin, r.auth()):
		return nil, jute.NoAuth
	case !fits(n.aversion, req.Version):
		return nil, jute.BadVersion
	}
	r.notOwn = r.notOwn || n.owner != r.session.id
	n.acl = acl
	n.aversion++
	return &jute.StatResponse{Stat: n.stat()}, jute.OK
}

func (t *Tree) check(r *request, req *jute.PathVersionRequest) jute.Code {
	if !ValidPath(req.Path) {
		return jute.BadArguments
	}
	n := t.node(req.Path)
	switch {
	case n == nil:
		return jute.NoNode
	case !t.allowed(n.acl, jute.PermRead, r.auth()):
		return jute.NoAuth
	case !fits(n.version, req.Version):
		return jute.BadVersion
	}
	return jute.OK
}

// multi does all or nothing. When an operation fails, those before it answer
// OK, those after it a runtime inconsistency, and the header says OK: that is
// how the real server tells which one it was.
func (t *Tree) multi(r *request, req *jute.MultiRequest) Reply {
	r.multi = true
	body := &jute.MultiResponse{Results: make([]jute.MultiResult, 0, len(req.Ops))}
	txn := Txn{Zxid: r.zxid}
	bad := jute.OK
	for _, o := range req.Ops {
		if bad != jute.OK {
			txn.Paths = append(txn.Paths, writes(o)...)
			body.Results = append(body.Results, errorResult(jute.RuntimeInconsistency))
			continue
		}
		op := o.Op
		if !op.InMulti() {
			t.rollback(r)
			rep := failed(jute.MarshallingError)
			rep.Txn = Txn{Zxid: r.zxid, Err: jute.MarshallingError}
			return rep
		}
		path, res, code := t.apply(r, op, o.Request)
		if op == jute.OpCheck {
			if txn.Guard == "" {
				txn.Guard = path
			}
		} else {
			txn.Paths = append(txn.Paths, path)
		}
		if code != jute.OK {
			bad = code
			for i := range body.Results {
				body.Results[i] = errorResult(jute.OK)
			}
			body.Results = append(body.Results, errorResult(code))
			continue
		}
		if res == nil {
			res = &jute.NoBody{}
		}
		if op == jute.OpCreateTTL || op == jute.OpCreateContainer {
			op = jute.OpCreate2 // so the real server names them in results
		}
		body.Results = append(body.Results, jute.MultiResult{Op: op, Response: res})
	}
	txn.Err = bad
	if bad != jute.OK {
		t.rollback(r)
	} else {
		t.run(r)
	}
	return Reply{Body: body, Txn: txn}
}

func writes(o jute.MultiOp) []string {
	if o.Op == jute.OpCheck {
		return nil
	}
	return jute.Paths(o.Request)
}

func (t *Tree) rollback(r *request) {
	for _, f := range slices.Backward(r.undo) {
		f()
	}
	r.triggers = nil
}
