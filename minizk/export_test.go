package minizk

// CompactAt makes the journal of a server short.
func CompactAt(s *Server, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal.limit = size
}
