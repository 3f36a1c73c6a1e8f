package minizk

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// version is what the server says it is: the one that its behaviour is taken
// from.
const version = "3.9.5-minizk"

// word answers a four-letter word and ends the connection; false if the four
// bytes are none, but the length of a frame.
func (s *Server) word(c *conn, word string) bool {
	answer := s.answer(word)
	if answer == nil {
		return false
	}
	s.mu.Lock()
	text := answer(s)
	c.put(time.Time{}, func(b []byte) []byte { return append(b, text...) })
	c.closeAfter()
	s.mu.Unlock()
	return true
}

// answer finds what a word asks for. The functions run under s.mu.
func (s *Server) answer(word string) func(*Server) string {
	switch word {
	case "ruok":
		return func(*Server) string { return "imok" }
	case "srvr":
		return (*Server).srvr
	case "stat":
		return (*Server).stat
	case "mntr":
		return (*Server).mntr
	case "cons":
		return (*Server).cons
	case "dump":
		return (*Server).dump
	case "wchs":
		return (*Server).wchs
	case "wchc":
		return (*Server).wchc
	case "wchp":
		return (*Server).wchp
	case "conf":
		return (*Server).conf
	case "envi":
		return (*Server).envi
	case "isro":
		return func(*Server) string { return "rw" }
	case "srst":
		return (*Server).srst
	default:
		return nil
	}
}

func (s *Server) srvr() string {
	n := s.tree.Count()
	return fmt.Sprintf("Zookeeper version: %s\nLatency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\n"+
		"Outstanding: 0\nZxid: %#x\nMode: standalone\nNode count: %d\n",
		version, s.stats.received, s.stats.sent, len(s.conns), s.tree.Zxid(), n.Nodes)
}

func (s *Server) stat() string {
	version, rest, _ := strings.Cut(s.srvr(), "\n")
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nClients:\n", version)
	for _, c := range s.sorted() {
		fmt.Fprintf(&b, " %s[1](queued=0,recved=%d,sent=%d)\n", c.raw.RemoteAddr(), c.traffic.received, c.traffic.sent)
	}
	return b.String() + "\n" + rest
}

func (s *Server) sorted() []*conn {
	return slices.SortedFunc(maps.Values(s.conns), func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
}

func (s *Server) mntr() string {
	n := s.tree.Count()
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "zk_%s\t%v\n", key, value) }
	line("version", version)
	line("server_state", "standalone")
	line("avg_latency", 0.0)
	line("min_latency", 0)
	line("max_latency", 0)
	line("packets_received", s.stats.received)
	line("packets_sent", s.stats.sent)
	line("num_alive_connections", len(s.conns))
	line("outstanding_requests", 0)
	line("znode_count", n.Nodes)
	line("watch_count", n.Watches)
	line("ephemerals_count", n.Ephemerals)
	line("approximate_data_size", n.DataSize)
	line("global_sessions", n.Sessions)
	line("uptime", time.Since(s.clock.start).Milliseconds())
	return b.String()
}

func (s *Server) cons() string {
	var b strings.Builder
	for _, c := range s.sorted() {
		t := c.traffic
		fmt.Fprintf(&b, " %s[1](queued=0,recved=%d,sent=%d", c.raw.RemoteAddr(), t.received, t.sent)
		if c.session != 0 {
			info, _ := s.tree.Session(c.session)
			fmt.Fprintf(&b, ",sid=%#x,lop=%v,est=%d,to=%d,lcxid=%#x,lzxid=%#x",
				c.session, t.lastOp, c.since.UnixMilli(), info.Timeout, t.lastXid, t.lastZxid)
		}
		b.WriteString(")\n")
	}
	return b.String() + "\n"
}

func (s *Server) dump() string {
	sessions := s.tree.Sessions()
	buckets := map[int64][]tree.SessionInfo{}
	owners := 0
	for _, i := range sessions {
		buckets[i.Expires] = append(buckets[i.Expires], i)
		if len(i.Ephemerals) > 0 {
			owners++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(buckets), len(sessions))
	for _, at := range slices.Sorted(maps.Keys(buckets)) {
		fmt.Fprintf(&b, "%d expire at %v:\n", len(buckets[at]), time.UnixMilli(at).UTC())
		for _, i := range buckets[at] {
			fmt.Fprintf(&b, "\t%#x\n", i.ID)
		}
	}
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", owners)
	for _, i := range sessions {
		if len(i.Ephemerals) > 0 {
			fmt.Fprintf(&b, "%#x:\n\t%s\n", i.ID, strings.Join(i.Ephemerals, "\n\t"))
		}
	}
	return b.String()
}

func (s *Server) wchs() string {
	n := s.tree.Count()
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", n.WatchingConns, n.WatchedPaths, n.Watches)
}

func (s *Server) wchc() string {
	var b strings.Builder
	for _, c := range s.sorted() {
		if paths := s.tree.Watched(c.id); len(paths) > 0 {
			fmt.Fprintf(&b, "%#x\n\t%s\n", c.session, strings.Join(paths, "\n\t"))
		}
	}
	return b.String() + "\n"
}

func (s *Server) wchp() string {
	byPath := map[string][]string{}
	for _, c := range s.sorted() {
		for _, p := range s.tree.Watched(c.id) {
			byPath[p] = append(byPath[p], fmt.Sprintf("%#x", c.session))
		}
	}
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(byPath)) {
		fmt.Fprintf(&b, "%s\n\t%s\n", p, strings.Join(byPath[p], "\n\t"))
	}
	return b.String() + "\n"
}

func (s *Server) conf() string {
	_, port, _ := strings.Cut(s.addr, ":")
	lowest, highest := s.tree.Timeouts()
	return fmt.Sprintf("clientPort=%s\ntickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=0\n",
		port, s.cfg.Tick.Milliseconds(), s.cfg.MaxConnsPerIP, lowest, highest)
}

func (s *Server) envi() string {
	return fmt.Sprintf("Environment:\nzookeeper.version=%s\nos.name=%s\nos.arch=%s\n", version, runtime.GOOS, runtime.GOARCH)
}

// srst sets the counters back.
func (s *Server) srst() string {
	s.stats = stats{}
	return "Server stats reset.\n"
}
