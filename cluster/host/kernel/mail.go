package kernel

import (
	"sync"
	"sync/atomic"
	"time"
)

// post is an event from outside, to fire at once or at a time.
type post struct {
	at    time.Duration
	ev    Event
	timer *Timer // to use, or nil
}

// mailbox is the one door through which other goroutines reach a kernel.
type mailbox struct {
	mu    sync.Mutex
	in    []post
	spare []post
	full  atomic.Bool
	bell  chan struct{}
	timer *time.Timer
	rests atomic.Bool
}

func (m *mailbox) init() { m.bell = make(chan struct{}, 1) }

// Post fires ev inside the kernel, in the order of posting; from any goroutine.
func (k *Kernel) Post(ev Event) { k.mail.put(post{ev: ev}) }

// PostAt fires ev inside the kernel at a time of its clock; from any goroutine.
func (k *Kernel) PostAt(at time.Duration, ev Event) { k.mail.put(post{at: at, ev: ev}) }

// PostSet is PostAt with a timer that is embedded in something, and neither set
// nor posted now.
func (k *Kernel) PostSet(t *Timer, at time.Duration, ev Event) {
	k.mail.put(post{at: at, ev: ev, timer: t})
}

func (m *mailbox) put(p post) {
	m.mu.Lock()
	m.in = append(m.in, p)
	m.full.Store(true)
	m.mu.Unlock()
	if m.rests.Load() {
		select {
		case m.bell <- struct{}{}:
		default:
		}
	}
}

func (m *mailbox) waiting() bool { return m.full.Load() }

func (m *mailbox) take() []post {
	m.mu.Lock()
	batch := m.in
	m.in, m.spare = m.spare[:0], nil
	m.full.Store(false)
	m.mu.Unlock()
	return batch
}

func (m *mailbox) giveBack(batch []post) {
	m.mu.Lock()
	m.spare = batch[:0]
	m.mu.Unlock()
}

// wait returns at the next post, or after d if d is not negative. A bell rung
// for an earlier post may end it early.
func (m *mailbox) wait(d time.Duration) {
	m.rests.Store(true)
	defer m.rests.Store(false)
	if m.full.Load() { // posted before the flag was seen
		return
	}
	if d < 0 {
		<-m.bell
		return
	}
	if m.timer == nil {
		m.timer = time.NewTimer(d)
	} else {
		m.timer.Reset(d)
	}
	select {
	case <-m.bell:
		m.timer.Stop()
	case <-m.timer.C:
	}
}
