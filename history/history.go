package history

// History is a well-formed sequence of operations, in order of Index.
type History struct {
	ops []Op
}

// Ops returns the operations; the slice must not be changed.
func (h History) Ops() []Op { return h.ops }

// Len is the number of lines.
func (h History) Len() int { return len(h.ops) }
