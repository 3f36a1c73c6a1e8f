package checker

import (
	"bytes"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// cpu is the processor time that the process has used.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// registerRun is a run of n operations on many keys, as the run loop records it.
func registerRun(n int) []history.Op {
	r := recipe{N: n, Clients: 20, Keys: max(n/200, 1), Active: 20, Read: 0.5, Write: 0.5, Late: 3, Seed: 1}
	drawn := r.draw()
	plain := make([]drawnOp, len(drawn))
	for i, d := range drawn {
		plain[i] = drawnOp{d.call, d.ret}
	}
	positions := positionsOf(plain)
	ops := make([]history.Op, 2*len(drawn))
	for i, d := range drawn {
		key := "k" + strconv.Itoa(d.key)
		invoke := history.Op{Process: history.Process(d.client), F: "read", Value: history.KeyValue{Key: key}.JSON()}
		kv := history.KeyValue{Key: key}
		if d.to != initial {
			kv.Value = strconv.AppendInt(nil, int64(d.to), 10)
		}
		if d.kind == opWrite {
			invoke.F, invoke.Value = "write", kv.JSON()
		}
		complete := invoke
		complete.Type, complete.Value, complete.Node, complete.Tries = history.Ok, kv.JSON(), "tablet-1", 1
		invoke.Index, invoke.Time = int(positions[i][0]), time.Duration(d.call)
		complete.Index, complete.Time = int(positions[i][1]), time.Duration(d.ret)
		ops[invoke.Index], ops[complete.Index] = invoke, complete
	}
	return ops
}

// BenchmarkPipeline takes a run through its whole life: written line by line,
// read back, checked for form, and every key judged by the exact algorithm.
func BenchmarkPipeline(b *testing.B) {
	const n = 1_000_000
	ops := registerRun(n)
	opts := DefaultLinearizable()
	opts.Memory = 1 // Porcupine is not asked: its cost has a benchmark of its own
	for b.Loop() {
		marks := []time.Duration{cpu(b)}
		mark := func() { marks = append(marks, cpu(b)) }
		var file bytes.Buffer
		file.Grow(200 << 20)
		var line []byte
		for _, op := range ops {
			line, _ = history.AppendJSON(line[:0], op)
			file.Write(append(line, '\n'))
		}
		mark()
		h, _, err := history.Read(&file)
		if err != nil {
			b.Fatal(err)
		}
		mark()
		v, err := NewLinearizable(opts).Check(b.Context(), h)
		if err != nil || v.Validity != Valid {
			b.Fatal(v.Summary, err)
		}
		mark()
		for i, name := range []string{"write", "read", "check"} {
			b.ReportMetric((marks[i+1] - marks[i]).Seconds(), name+"-cpu-s")
		}
	}
}
