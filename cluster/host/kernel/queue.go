package kernel

// queue is the ring of ready tasks.
type queue struct {
	ring []*task // length a power of two
	head int
	n    int
}

func (q *queue) len() int { return q.n }

func (q *queue) add(t *task) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = t
	q.n++
}

func (q *queue) grow() {
	ring := make([]*task, max(64, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = ring, 0
}

func (q *queue) first() *task {
	t := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return t
}

// remove takes the i-th task; the first takes its place.
func (q *queue) remove(i int) *task {
	at := (q.head + i) & (len(q.ring) - 1)
	t := q.ring[at]
	q.ring[at] = q.ring[q.head]
	q.first()
	return t
}

// filter keeps the tasks for which keep holds, in order.
func (q *queue) filter(keep func(*task) bool) {
	n := q.n
	for range n {
		if t := q.first(); keep(t) {
			q.add(t)
		}
	}
}
