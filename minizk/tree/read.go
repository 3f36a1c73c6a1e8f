package tree

import (
	"slices"
	"strings"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// read answers a request that changes no node. It may leave a watch.
func (t *Tree) read(r *request, op jute.OpCode, req jute.Record) Reply {
	c := r.conn.id
	switch req := req.(type) {
	case *jute.PathWatchRequest:
		switch op {
		case jute.OpExists:
			return t.exists(r, req)
		case jute.OpGetData:
			return t.getData(r, req)
		default:
			return t.getChildren(r, op, req)
		}
	case *jute.PathRequest:
		switch op {
		case jute.OpGetACL:
			return t.getACL(r, req.Path)
		case jute.OpGetAllChildrenNumber:
			return t.countBelow(r, req.Path)
		case jute.OpGetEphemerals:
			return Reply{Body: &jute.EphemeralsResponse{Ephemerals: under(r.session.ephemerals, req.Path)}}
		default: // sync
			return Reply{Body: &jute.PathResponse{Path: req.Path}}
		}
	case *jute.MultiRequest:
		return t.multiRead(r, req)
	case *jute.SetWatchesRequest:
		t.setWatches(c, req)
		return Reply{}
	case *jute.PathTypeRequest:
		if op != jute.OpAddWatch {
			return failed(t.findWatch(req.Path, c, req.Type, op == jute.OpRemoveWatches))
		}
		if code := t.addWatch(req.Path, c, req.Type); code != jute.OK {
			return failed(code)
		}
		return Reply{Body: &jute.ErrorResponse{}}
	default: // whoAmI has no body
		return Reply{Body: whoAmI(r.conn.auth)}
	}
}

func under(paths []string, prefix string) []string {
	// Java's idea of white space: everything up to the blank.
	if p := strings.TrimFunc(prefix, func(c rune) bool { return c <= ' ' }); p == "" || p == "/" {
		return slices.Clone(paths)
	}
	var out []string
	for _, p := range paths {
		if strings.HasPrefix(p, prefix) {
			out = append(out, p)
		}
	}
	return out
}

func (t *Tree) exists(r *request, req *jute.PathWatchRequest) Reply {
	if strings.IndexByte(req.Path, 0) >= 0 {
		return failed(jute.BadArguments)
	}
	n := t.node(req.Path)
	if n != nil && !t.allowed(n.acl, jute.PermRead, r.conn.auth) {
		return failed(jute.NoAuth)
	}
	if req.Watch { // for a missing node too: that is what exists is for
		t.data.add(req.Path, r.conn.id, oneShot)
	}
	if n == nil {
		return failed(jute.NoNode)
	}
	return Reply{Body: &jute.StatResponse{Stat: n.stat()}}
}

// readable finds a node that the client may read.
func (t *Tree) readable(r *request, path string) (*node, jute.Code) {
	n := t.node(path)
	if n == nil {
		return nil, jute.NoNode
	}
	if !t.allowed(n.acl, jute.PermRead, r.conn.auth) {
		return nil, jute.NoAuth
	}
	return n, jute.OK
}

func (t *Tree) getData(r *request, req *jute.PathWatchRequest) Reply {
	n, code := t.readable(r, req.Path)
	if code != jute.OK {
		return failed(code)
	}
	if req.Watch {
		t.data.add(req.Path, r.conn.id, oneShot)
	}
	return Reply{Body: &jute.GetDataResponse{Data: n.data, Stat: n.stat()}}
}

func (t *Tree) getChildren(r *request, op jute.OpCode, req *jute.PathWatchRequest) Reply {
	n, code := t.readable(r, req.Path)
	if code != jute.OK {
		return failed(code)
	}
	if req.Watch {
		t.child.add(req.Path, r.conn.id, oneShot)
	}
	children := slices.Clone(n.children)
	if op == jute.OpGetChildren2 {
		return Reply{Body: &jute.Children2Response{Children: children, Stat: n.stat()}}
	}
	return Reply{Body: &jute.ChildrenResponse{Children: children}}
}

func (t *Tree) getACL(r *request, path string) Reply {
	n := t.node(path)
	if n == nil {
		return failed(jute.NoNode)
	}
	if !t.allowed(n.acl, jute.PermRead|jute.PermAdmin, r.conn.auth) {
		return failed(jute.NoAuth)
	}
	acl := n.acl
	if !t.allowed(acl, jute.PermAdmin, r.conn.auth) {
		acl = hideDigests(acl)
	}
	return Reply{Body: &jute.GetACLResponse{ACL: acl, Stat: n.stat()}}
}

// countBelow answers getAllChildrenNumber: all nodes below, not only the next
// level.
func (t *Tree) countBelow(r *request, path string) Reply {
	n, code := t.readable(r, path)
	if code != jute.OK {
		return failed(code)
	}
	if path == "/" {
		return Reply{Body: &jute.NumberResponse{Number: int32(len(t.nodes) - 1)}}
	}
	if path == "" { // every path begins with "" + "/", the root's own included
		return Reply{Body: &jute.NumberResponse{Number: int32(len(t.nodes))}}
	}
	return Reply{Body: &jute.NumberResponse{Number: t.below(path, n)}}
}

func (t *Tree) below(path string, n *node) int32 {
	sum := int32(len(n.children))
	for _, name := range n.children {
		p := path + "/" + name
		if c := t.nodes[p]; len(c.children) > 0 {
			sum += t.below(p, c)
		}
	}
	return sum
}

func (t *Tree) multiRead(r *request, req *jute.MultiRequest) Reply {
	body := &jute.MultiResponse{Results: make([]jute.MultiResult, 0, len(req.Ops))}
	for _, o := range req.Ops {
		sub, ok := o.Request.(*jute.PathWatchRequest)
		if !ok { // what was read before goes out all the same
			rep := failed(jute.MarshallingError)
			rep.Body = body
			return rep
		}
		one := &jute.PathWatchRequest{Path: sub.Path} // no watches are left here
		var rep Reply
		if o.Op == jute.OpGetData {
			rep = t.getData(r, one)
		} else {
			rep = t.getChildren(r, jute.OpGetChildren, one)
		}
		if code := rep.Header.Err; code != jute.OK {
			body.Results = append(body.Results, errorResult(code))
			continue
		}
		body.Results = append(body.Results, jute.MultiResult{Op: o.Op, Response: rep.Body})
	}
	return Reply{Body: body}
}

func errorResult(code jute.Code) jute.MultiResult {
	return jute.MultiResult{Op: jute.OpError, Err: code, Response: &jute.ErrorResponse{Err: code}}
}
