package host

import "context"

// Mutex excludes tasks of one node from each other across parking calls. Built
// on Cond alone. The zero value is not usable; see NewMutex.
type Mutex struct {
	cond Cond
	held bool
}

// NewMutex returns an unlocked mutex of the host's node.
func NewMutex(h Host) *Mutex { return &Mutex{cond: h.NewCond()} }

// Lock parks until the mutex is free or ctx ends.
func (m *Mutex) Lock(ctx context.Context) error {
	for m.held {
		if err := m.cond.Wait(ctx); err != nil {
			return err
		}
	}
	m.held = true
	return nil
}

// Unlock frees the mutex; it never parks.
func (m *Mutex) Unlock() {
	m.held = false
	m.cond.Broadcast()
}

// Queue is an unbounded queue between tasks of one node.
type Queue[T any] struct {
	cond  Cond
	items []T
}

// NewQueue returns an empty queue of the host's node.
func NewQueue[T any](h Host) *Queue[T] { return &Queue[T]{cond: h.NewCond()} }

// Put adds an item; it never parks.
func (q *Queue[T]) Put(item T) {
	q.items = append(q.items, item)
	q.cond.Broadcast()
}

// Len is the number of items waiting.
func (q *Queue[T]) Len() int { return len(q.items) }

// Take parks until there is an item, and removes it.
func (q *Queue[T]) Take(ctx context.Context) (T, error) {
	for len(q.items) == 0 {
		if err := q.cond.Wait(ctx); err != nil {
			var zero T
			return zero, err
		}
	}
	item := q.items[0]
	var zero T
	q.items[0] = zero
	q.items = q.items[1:]
	return item, nil
}
