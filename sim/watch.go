package sim

import (
	"fmt"
	"runtime"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// watch looks, on the wall clock, for a step that does not end: a task that
// blocks natively stops the whole world, and the runtime says nothing. It ends
// with the function that it returns.
func (w *World) watch() (stop func()) {
	if w.cfg.Stall < 0 {
		return func() {}
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(w.cfg.Stall)
		defer tick.Stop()
		last := w.k.Steps()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			now := w.k.Steps()
			if now == last {
				w.Find(host.Finding{Detail: fmt.Sprintf("a task blocks outside the kernel for more than %v\n%s", w.cfg.Stall, stacks())})
				return
			}
			last = now
		}
	}()
	return func() {
		close(quit)
		<-gone
	}
}

// stacks are those of all goroutines, the blocked task's among them.
func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}
