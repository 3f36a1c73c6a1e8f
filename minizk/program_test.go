package minizk_test

import (
	"math/rand/v2"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// program draws the steps of one random program: a few sessions that ask for
// everything a client can ask for, on few paths, so that they meet.
type program struct {
	r        *rand.Rand
	sessions int
}

// kinds of steps.
type stepKind uint8

const (
	stepRequest stepKind = iota
	stepPipeline
	stepTorn
	stepDrop      // close the socket, come back with the session
	stepDisplace  // come back while the old connection is open
	stepForget    // come back with a wrong password
	stepClose     // close the session, open another
	stepGarbage   // an operation that does not exist
	stepSetWatch  // come back and re-arm watches
	stepAheadOf   // come back having seen the future
	stepTakenOver // another connection takes the session over and closes it
	stepGreet     // a session with an odd time-out opens and closes
)

type call struct {
	op  jute.OpCode
	req jute.Record
}

type step struct {
	kind    stepKind
	session int
	calls   []call
	cut     int   // of a torn request: how many bytes are left of its body
	back    int64 // of setWatches: how long before the last zxid seen; of greet: the time-out
}

func newProgram(seed uint64) *program {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	return &program{r: r, sessions: 2 + r.IntN(3)}
}

func (p *program) step() step {
	s := step{session: p.r.IntN(p.sessions)}
	switch n := p.r.IntN(1000); {
	case n < 900:
		s.calls = []call{p.call()}
	case n < 940:
		s.kind = stepPipeline
		for n := 2 + p.r.IntN(8); len(s.calls) < n; {
			if c := p.call(); c.op != jute.OpAuth { // the real server answers that one out of turn
				s.calls = append(s.calls, c)
			}
		}
	case n < 955:
		s.kind, s.calls = stepTorn, []call{p.call()}
		s.cut = p.r.IntN(len(jute.Marshal(s.calls[0].req)) + 1)
		if s.calls[0].op == jute.OpAuth { // surely torn: then the connection ends
			s.cut /= 2
		}
	case n < 963:
		s.kind = stepDrop
	case n < 969:
		s.kind = stepDisplace
	case n < 973:
		s.kind = stepForget
	case n < 979:
		s.kind = stepClose
	case n < 982:
		s.kind = stepGarbage
		s.calls = []call{{pick(p.r, jute.OpCode(55), jute.OpCheck, jute.OpCode(-7), jute.OpNotification), &jute.NoBody{}}}
	case n < 994:
		s.kind, s.calls, s.back = stepSetWatch, []call{p.setWatches()}, int64(p.r.IntN(30))
	case n < 996:
		s.kind = stepAheadOf
	case n < 998:
		s.kind, s.back = stepGreet, pick[int64](p.r, 0, -1, 1, 999, 1000, 1001, 5000, 10000, 10001, 1<<31-1, -1<<31)
	default:
		s.kind = stepTakenOver
	}
	return s
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (p *program) path() string {
	if p.r.IntN(25) == 0 {
		return pick(p.r, "", "/", "a", "/a/", "//a", "/a//b", "/.", "/a/..", "/a.b", "/zookeeper", "/zookeeper/quota",
			"/zookeeper/config", "/zookeeper/quota/x", "/é", "/\x01", "/\uffff", "/a\x00b", "/\ue000")
	}
	path := "/" + pick(p.r, "a", "b", "c")
	for p.r.IntN(2) == 0 && len(path) < 8 {
		path += "/" + pick(p.r, "a", "b", "c", "a0000000001", "b0000000002")
	}
	return path
}

func (p *program) data() []byte {
	switch p.r.IntN(6) {
	case 0:
		return nil
	case 1:
		return []byte{}
	default:
		return make([]byte, p.r.IntN(40))
	}
}

func (p *program) version() int32 { return pick[int32](p.r, -1, -1, -1, 0, 0, 1, 2, 3, -2) }

func (p *program) acl() []jute.ACL {
	id := func(scheme, id string) jute.ACL {
		return jute.ACL{
			Perms: pick[int32](p.r, jute.PermAll, jute.PermAll, jute.PermRead, jute.PermRead|jute.PermCreate, jute.PermAdmin, 0, jute.PermAll&^jute.PermRead),
			ID:    jute.ID{Scheme: scheme, ID: id},
		}
	}
	switch p.r.IntN(40) {
	case 0:
		return nil
	case 1:
		return []jute.ACL{}
	case 2:
		return []jute.ACL{id("auth", "")}
	case 3:
		return []jute.ACL{id("digest", "joe:hash"), id("world", "anyone")}
	case 4:
		return []jute.ACL{id("ip", pick(p.r, "0.0.0.0/0", "10.0.0.0/8", "1.2.3.4", "1.2.3", "1.2.3.4/33", "::/0", "x", ""))}
	case 5:
		return []jute.ACL{id("digest", pick(p.r, "joe", "a:b:c", "a:", ":b", "", "a:b:"))}
	case 6:
		return []jute.ACL{id("world", "someone")}
	case 7:
		return []jute.ACL{id("nonsense", "x")}
	case 8:
		return []jute.ACL{id("world", "anyone"), id("world", "anyone"), id("auth", "x")}
	case 9:
		return []jute.ACL{id("world", "anyone")}
	default:
		return jute.OpenACL()
	}
}

func (p *program) create(ttl bool) *jute.CreateRequest {
	path := p.path()
	if p.r.IntN(50) == 0 {
		// Only where they are refused: a sync or a watch event would send them
		// back, and the real server writes them in an encoding of Java's own.
		path = pick(p.r, "/\U0001f600", "/\xff\xfe", "/a/\U0001f600")
	}
	c := &jute.CreateRequest{
		Path: path, Data: p.data(), ACL: p.acl(),
		Flags: pick[int32](p.r, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, -1),
	}
	if ttl {
		// Without a TTL flag and with a negative TTL the real server dies.
		c.HasTTL, c.TTL = true, pick[int64](p.r, 1<<30, 1<<30, 1<<30, 1, 1<<40, 1<<40-1)
		if c.Flags == 5 || c.Flags == 6 {
			c.TTL = pick[int64](p.r, c.TTL, c.TTL, c.TTL, 0, -1)
		} else if p.r.IntN(4) > 0 {
			c.Flags = pick[int32](p.r, 5, 6)
		}
	}
	return c
}

func (p *program) write() call {
	switch p.r.IntN(9) {
	case 0, 1:
		return call{jute.OpCreate, p.create(false)}
	case 2:
		return call{jute.OpCreate2, p.create(false)}
	case 3:
		return call{jute.OpCreateTTL, p.create(true)}
	case 4:
		c := p.create(false)
		c.Flags = pick[int32](p.r, 4, 4, 4, c.Flags)
		return call{jute.OpCreateContainer, c}
	case 5, 6:
		return call{jute.OpSetData, &jute.SetDataRequest{Path: p.path(), Data: p.data(), Version: p.version()}}
	default:
		return call{jute.OpDelete, &jute.PathVersionRequest{Path: p.path(), Version: p.version()}}
	}
}

func (p *program) multi() call {
	m := &jute.MultiRequest{}
	for range p.r.IntN(6) {
		c := p.write()
		if p.r.IntN(3) == 0 {
			c = call{jute.OpCheck, &jute.PathVersionRequest{Path: p.path(), Version: p.version()}}
		}
		if p.r.IntN(60) == 0 {
			c = call{jute.OpGetData, get(p.path())}
		}
		m.Ops = append(m.Ops, jute.MultiOp{Op: c.op, Request: c.req})
	}
	return call{jute.OpMulti, m}
}

func (p *program) multiRead() call {
	m := &jute.MultiRequest{}
	for range p.r.IntN(5) {
		m.Ops = append(m.Ops, jute.MultiOp{Op: pick(p.r, jute.OpGetData, jute.OpGetChildren), Request: get(p.path())})
	}
	if p.r.IntN(40) == 0 {
		m.Ops = append(m.Ops, jute.MultiOp{Op: jute.OpCheck, Request: &jute.PathVersionRequest{Path: p.path()}})
	}
	return call{jute.OpMultiRead, m}
}

func (p *program) call() call {
	read := func(op jute.OpCode) call {
		return call{op, &jute.PathWatchRequest{Path: p.path(), Watch: p.r.IntN(3) == 0}}
	}
	switch n := p.r.IntN(100); {
	case n < 45:
		return p.write()
	case n < 53:
		return p.multi()
	case n < 58:
		return read(jute.OpGetData)
	case n < 64:
		return read(jute.OpExists)
	case n < 68:
		return read(jute.OpGetChildren)
	case n < 72:
		return read(jute.OpGetChildren2)
	case n < 74:
		return p.multiRead()
	case n < 77:
		return call{jute.OpGetACL, &jute.PathRequest{Path: p.path()}}
	case n < 80:
		return call{jute.OpSetACL, &jute.SetACLRequest{Path: p.path(), ACL: p.acl(), Version: p.version()}}
	default:
		return p.rareCall()
	}
}

func (p *program) rareCall() call {
	typ := func(op jute.OpCode, highest int) call {
		return call{op, &jute.PathTypeRequest{Path: p.path(), Type: int32(p.r.IntN(highest + 1))}}
	}
	switch p.r.IntN(20) {
	case 0:
		return call{jute.OpSync, &jute.PathRequest{Path: p.path()}}
	case 1:
		return call{jute.OpPing, &jute.NoBody{}}
	case 2, 3, 4, 5, 6:
		return typ(jute.OpAddWatch, 2)
	case 7, 8, 9:
		return typ(jute.OpRemoveWatches, 6)
	case 10, 11:
		return typ(jute.OpCheckWatches, 6)
	case 12, 13:
		return call{jute.OpGetEphemerals, &jute.PathRequest{Path: pick(p.r, "", "/", p.path(), "/a", " ")}}
	case 14, 15:
		return call{jute.OpGetAllChildrenNumber, &jute.PathRequest{Path: p.path()}}
	case 16:
		return call{jute.OpWhoAmI, &jute.NoBody{}}
	case 17:
		return call{jute.OpAuth, &jute.AuthPacket{
			Scheme: pick(p.r, "digest", "digest", "digest", "ip"), Auth: []byte(pick(p.r, "joe:pw", "ann:pw", "joe", "", "a:b:c")),
		}}
	case 18:
		return call{jute.OpDeleteContainer, &jute.PathRequest{Path: p.path()}}
	default:
		return call{jute.OpReconfig, &jute.ReconfigRequest{Joining: "x", CurConfigID: -1}}
	}
}

// setWatches draws what a client might ask for after coming back.
func (p *program) setWatches() call {
	list := func() []string {
		var l []string
		for range p.r.IntN(4) {
			l = append(l, p.path())
		}
		return l
	}
	w := &jute.SetWatchesRequest{Data: list(), Exist: list(), Child: list()}
	if p.r.IntN(2) == 0 {
		return call{jute.OpSetWatches, w}
	}
	w.Two, w.Persistent, w.PersistentRecursive = true, list(), list()
	return call{jute.OpSetWatches2, w}
}
