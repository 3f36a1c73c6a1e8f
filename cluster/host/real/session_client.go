package real

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// zkLibrary is go-zookeeper's connection, the only place that knows it. Its
// methods block until the reply, the end of the connection, or close. They
// return the library's errors; what these mean is the door's business.
type zkLibrary struct {
	conn *zk.Conn
}

// openLibrary starts a connection for the door's session. The callback of the
// library is synchronous: what it reports has happened, and the library has not
// yet gone on.
func openLibrary(d *zkDoor, servers []string, timeout time.Duration, log *zap.Logger) (*zkLibrary, error) {
	callback := func(e zk.Event) {
		if e.Type != zk.EventSession {
			return // watches are taken from the stream, in its order
		}
		switch e.State {
		case zk.StateHasSession:
			d.established()
		case zk.StateDisconnected:
			d.disconnected()
		case zk.StateExpired:
			d.expired()
		default:
		}
	}
	conn, events, err := zk.Connect(servers, timeout,
		zk.WithDialer(d.dial), zk.WithHostProvider(&zkServers{isShut: d.isShut}), zk.WithEventCallback(callback),
		zk.WithLogger(zkLog{log.Sugar()}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	l := &zkLibrary{conn: conn}
	// The channel drops events; its end says that the library's loop is gone.
	gone := func() {
		for range events {
		}
	}
	if !d.gate.spawn(gone) {
		conn.Close()
		return nil, errZKShut
	}
	return l, nil
}

// close ends the library's connection behind a shut door. It waits for the
// library to come to its dial, where a close is quick; elsewhere it may take a
// second.
func (l *zkLibrary) close(d *zkDoor) {
	timer := time.NewTimer(200 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-d.refused:
	case <-timer.C:
	}
	l.conn.Close()
}

// zkServers hands out the servers in turn. It says "wrapped around", which
// costs a second, only when all have been tried since the last success: so the
// first reconnect is immediate, and a refused dial cannot spin. Once the door is
// shut the library is sent to its dial without delay: there it can be closed.
type zkServers struct {
	isShut  func() bool
	mu      sync.Mutex
	servers []string
	next    int
	tries   int
	last    bool // the door is known to be shut
}

// Init takes the list of servers.
func (s *zkServers) Init(servers []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = servers
	return nil
}

// Len is the number of servers.
func (s *zkServers) Len() int { return len(s.servers) }

// Next is the server to try now.
func (s *zkServers) Next() (server string, retryStart bool) {
	shut := s.isShut()
	s.mu.Lock()
	defer s.mu.Unlock()
	if shut && !s.last {
		s.last, s.tries = true, 0
	}
	server = s.servers[s.next%len(s.servers)]
	s.next++
	s.tries++
	return server, s.tries > len(s.servers)
}

// Connected notes a success.
func (s *zkServers) Connected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries = 0
}

// zkLog sends the library's messages to the debug log.
type zkLog struct{ log *zap.SugaredLogger }

// Printf logs a message.
func (l zkLog) Printf(format string, args ...any) { l.log.Debugf(format, args...) }

// isRefusedArgument tells the errors by which the library refuses a request
// without trying to send it.
func isRefusedArgument(err error) bool {
	return errors.Is(err, zk.ErrInvalidPath) || errors.Is(err, zk.ErrShortBuffer) || errors.Is(err, zk.ErrInvalidFlags) ||
		errors.Is(err, host.ErrBadArguments)
}

// zkFound is the answer to a read.
type zkFound struct {
	data     []byte
	children []string
	stat     host.Stat
}

func found(data []byte, children []string, stat *zk.Stat) zkFound {
	return zkFound{data: data, children: children, stat: hostStat(stat)}
}

func hostStat(s *zk.Stat) host.Stat {
	if s == nil {
		return host.Stat{}
	}
	return host.Stat{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid, Version: s.Version, Cversion: s.Cversion,
		EphemeralOwner: s.EphemeralOwner, DataLength: s.DataLength, NumChildren: s.NumChildren,
		CtimeMillis: s.Ctime, MtimeMillis: s.Mtime,
	}
}

func (l *zkLibrary) get(path string, watch bool) (any, error) {
	if watch {
		data, stat, _, err := l.conn.GetW(path)
		return found(data, nil, stat), err
	}
	data, stat, err := l.conn.Get(path)
	return found(data, nil, stat), err
}

func (l *zkLibrary) children(path string, watch bool) (any, error) {
	if watch {
		names, stat, _, err := l.conn.ChildrenW(path)
		return found(nil, names, stat), err
	}
	names, stat, err := l.conn.Children(path)
	return found(nil, names, stat), err
}

// exists answers ErrNoNode for a missing node, which the library does not.
func (l *zkLibrary) exists(path string, watch bool) (any, error) {
	var there bool
	var stat *zk.Stat
	var err error
	if watch {
		there, stat, _, err = l.conn.ExistsW(path)
	} else {
		there, stat, err = l.conn.Exists(path)
	}
	if err == nil && !there {
		err = zk.ErrNoNode
	}
	return found(nil, nil, stat), err
}

func (l *zkLibrary) create(path string, data []byte, mode host.CreateMode) (any, error) {
	acl := zk.WorldACL(zk.PermAll)
	if mode == host.Container {
		return l.conn.CreateContainer(path, data, zk.FlagContainer, acl)
	}
	return l.conn.Create(path, data, zkFlags(mode), acl)
}

func zkFlags(mode host.CreateMode) int32 {
	switch mode {
	case host.Ephemeral:
		return zk.FlagEphemeral
	case host.PersistentSequential:
		return zk.FlagSequence
	case host.EphemeralSequential:
		return zk.FlagEphemeralSequential
	default:
		return zk.FlagPersistent
	}
}

func (l *zkLibrary) set(path string, data []byte, version int32) (any, error) {
	stat, err := l.conn.Set(path, data, version)
	return hostStat(stat), err
}

func (l *zkLibrary) delete(path string, version int32) (any, error) {
	return nil, l.conn.Delete(path, version)
}

func (l *zkLibrary) sync(path string) (any, error) {
	return l.conn.Sync(path)
}

// multi checks the paths itself: the library would send anything.
func (l *zkLibrary) multi(ops []host.ZKOp) (any, error) {
	acl := zk.WorldACL(zk.PermAll)
	requests := make([]any, 0, len(ops))
	for _, op := range ops {
		if !strings.HasPrefix(op.Path, "/") || op.Mode == host.Container {
			return host.MultiResult{Failed: -1}, host.ErrBadArguments
		}
		switch op.Kind {
		case host.OpCheck:
			requests = append(requests, &zk.CheckVersionRequest{Path: op.Path, Version: op.Version})
		case host.OpCreate:
			requests = append(requests, &zk.CreateRequest{Path: op.Path, Data: op.Data, Acl: acl, Flags: zkFlags(op.Mode)})
		case host.OpSet:
			requests = append(requests, &zk.SetDataRequest{Path: op.Path, Data: op.Data, Version: op.Version})
		case host.OpDelete:
			requests = append(requests, &zk.DeleteRequest{Path: op.Path, Version: op.Version})
		default:
			return host.MultiResult{Failed: -1}, host.ErrBadArguments
		}
	}
	answers, err := l.conn.Multi(requests...)
	return multiResult(answers), err
}

// multiResult finds the failing operation: the first with an error, as those
// before it have none and those after it only say that they were not tried.
func multiResult(answers []zk.MultiResponse) host.MultiResult {
	r := host.MultiResult{Failed: -1, Names: make([]string, len(answers)), Stats: make([]host.Stat, len(answers))}
	for i, a := range answers {
		r.Names[i], r.Stats[i] = a.String, hostStat(a.Stat)
		if a.Error != nil && r.Failed < 0 {
			r.Failed = i
		}
	}
	return r
}
