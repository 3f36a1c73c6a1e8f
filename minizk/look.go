package minizk

import (
	"slices"

	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// Sessions lists the sessions by id, connected or not.
func (s *Server) Sessions() []tree.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.Sessions()
}

// Count gives the numbers of nodes, watches, sessions and connections.
func (s *Server) Count() tree.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.Count()
}

// Paths lists all nodes, sorted.
func (s *Server) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.Paths()
}

// Node looks at a node past every ACL; false if there is none.
func (s *Server) Node(path string) (data []byte, stat jute.Stat, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, stat, ok = s.tree.Look(path)
	return slices.Clone(data), stat, ok
}

// Zxid is that of the last transaction.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.Zxid()
}
