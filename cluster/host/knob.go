package host

import (
	"sync/atomic"
	"time"
)

// Knob is a duration that the harness turns while nodes read it, in any world:
// in real time every node has a goroutine of its own. The zero value is zero.
type Knob struct{ v atomic.Int64 }

// Set turns the knob.
func (k *Knob) Set(d time.Duration) { k.v.Store(int64(d)) }

// Get reads it.
func (k *Knob) Get() time.Duration { return time.Duration(k.v.Load()) }
