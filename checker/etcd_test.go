package checker

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// porcupineData is the folder of real histories that come with Porcupine's
// module, where the compiler found its source.
func porcupineData(tb testing.TB) string {
	tb.Helper()
	file, _ := runtime.FuncForPC(reflect.ValueOf(porcupine.CheckOperations).Pointer()).FileLine(0)
	data := filepath.Join(filepath.Dir(file), "test_data")
	if _, err := os.Stat(data); err != nil {
		tb.Skipf("Porcupine's sources are not beside its package (built with -trimpath?): %v", err)
	}
	return data
}

// etcdLog reads a console log of Jepsen's etcd test: one register that is absent
// at first, line order is the only clock, and an operation without an answer may
// have happened.
func etcdLog(tb testing.TB, name string) []regOp {
	tb.Helper()
	raw, err := os.ReadFile(name)
	require.NoError(tb, err)
	line := regexp.MustCompile(`^INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(.*)$`)
	var ops []regOp
	open := map[string]int{}
	clock := int32(0)
	for text := range strings.Lines(string(raw)) {
		m := line.FindStringSubmatch(strings.TrimSpace(text))
		if m == nil || m[2] == "info" {
			continue
		}
		process, typ, f, value := m[1], m[2], m[3], etcdValues(m[4])
		if typ == "invoke" {
			op := regOp{Call: clock, Ret: forever, Kind: map[string]opKind{"read": opRead, "write": opWrite, "cas": opCAS}[f]}
			clock++
			switch f {
			case "write":
				op.Value = value[0]
			case "cas":
				op.From, op.Value = value[0], value[1]
			}
			open[process] = len(ops)
			ops = append(ops, op)
			continue
		}
		op := &ops[open[process]]
		delete(open, process)
		switch {
		case f == "read" && typ == "ok":
			op.Value, op.Ret = value[0], clock
		case f == "read": // it timed out: it saw nothing, and is left open
		case f == "cas" && typ == "fail":
			op.Kind, op.Ret = opFailedCAS, clock
		case typ == "ok":
			op.Ret = clock
		}
		clock++
	}
	out := ops[:0]
	for _, op := range ops {
		if op.Kind != opRead || op.Ret != forever {
			out = append(out, op)
		}
	}
	return out
}

// etcdValues numbers "nil", "3" or "[1 4]": absent is 0, n is n+1.
func etcdValues(text string) []int32 {
	var out []int32
	for word := range strings.FieldsSeq(strings.Trim(text, "[]")) {
		n, err := strconv.Atoi(word)
		if err != nil {
			n = -1
		}
		out = append(out, int32(n+1))
	}
	return out
}

// The 102 logs that Jepsen recorded of etcd: the window search must say of every
// one what Porcupine says, and much sooner.
func TestEtcdLogs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(porcupineData(t), "jepsen", "etcd_*.log"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 102)
	counts := map[answer]int{}
	var fast, slow time.Duration
	for _, name := range files {
		ops := etcdLog(t, name)
		begun := time.Now()
		got := searchRegister(ops, valuesOf(ops), windowLimits{})
		fast += time.Since(begun)
		begun = time.Now()
		want := porcupineSays(registerModel(nil), casOperations(ops), 0)
		slow += time.Since(begun)
		require.Equal(t, want, got.answer, name)
		counts[want]++
	}
	t.Logf("%v; window search %v, Porcupine %v, %.0f times", counts, fast, slow, slow.Seconds()/fast.Seconds())
	require.Equal(t, 24, counts[legal], fmt.Sprint(counts))
}
