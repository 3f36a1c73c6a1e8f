package inproc

import (
	"fmt"
	"os"
	"testing"
)

func TestZZDump(t *testing.T) {
	var seed uint64
	fmt.Sscan(os.Getenv("SEED"), &seed)
	e := chaosExperiment(seed)
	l, err := perform(t, e)
	if err != nil {
		t.Error(err)
	}
	f, _ := os.Create("/tmp/h5_dump.txt")
	for _, op := range l.ops {
		fmt.Fprintf(f, "%8.3f p%d %s %s %s %s %s\n", op.Time.Seconds(), op.Process, op.Type, op.F, op.Node, op.Value, op.Error)
	}
	f.Close()
}
