package kernel

import "context"

// Order has tasks start one after the other, in the order of GoOrdered,
// whatever the scheduler picks; once started they are free. It is what keeps
// the calls of one link in sending order. The zero value is ready.
type Order struct {
	waiting []*task // not yet ready, behind head
	head    *task   // ready, not yet started
}

// GoOrdered starts a task in turn.
func (g *Group) GoOrdered(ctx context.Context, o *Order, name string, r Runner) {
	t := g.k.newTask(g, Of(ctx), name, r)
	t.order = o
	if o.head == nil {
		o.head = t
		g.makeReady(t)
		return
	}
	o.waiting = append(o.waiting, t)
}

// started lets the next task become ready.
func (o *Order) started(t *task) {
	t.order = nil
	o.head = nil
	if len(o.waiting) > 0 {
		o.head = o.waiting[0]
		o.waiting = o.waiting[1:]
		o.head.group.makeReady(o.head)
	}
}

// drop forgets a task that was killed before it started.
func (o *Order) drop(t *task) {
	if o.head == t {
		o.head = nil
	}
	for i, w := range o.waiting {
		if w == t {
			o.waiting = append(o.waiting[:i], o.waiting[i+1:]...)
			return
		}
	}
}
