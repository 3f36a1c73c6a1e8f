package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"
)

// autoPrefix begins the names of partitions that the creator made.
const autoPrefix = "auto-"

// createPartitions is the background creator: with every tick each table that
// asks for it gets its next partition and loses its oldest, as with partitions by
// time. An old leader that wakes inside a tick is what fencing is for.
func (t *term) createPartitions(ctx context.Context) {
	for t.h.Sleep(ctx, t.timing.PartitionTick) == nil {
		t.ask(ctx, "partition tick", t.partitionTick)
	}
}

func (t *term) partitionTick(ctx context.Context) {
	for _, tb := range t.sortedTables() {
		if tb.auto == 0 || t.tables[tb.info.Name] != tb {
			continue
		}
		add, remove := nextPartitions(sortedKeys(tb.parts), tb.auto)
		for _, name := range add {
			reply := t.makePartition(ctx, tb.info.Name, name)
			t.log.Debug("partition made", zap.String("partition", name), zap.Stringer("code", reply.Code))
		}
		for _, name := range remove {
			reply := t.removePart(ctx, tb.info.Name, name)
			t.log.Debug("partition dropped", zap.String("partition", name), zap.Stringer("code", reply.Code))
		}
	}
}

// nextPartitions is what one tick does to a table that keeps so many partitions:
// one more, or as many as are missing, and those that are too many.
func nextPartitions(have []string, keep int) (add, remove []string) {
	var numbers []int
	for _, name := range have {
		if rest, ok := strings.CutPrefix(name, autoPrefix); ok {
			if n, err := strconv.Atoi(rest); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.SortFunc(numbers, cmp.Compare[int])
	last := 0
	if len(numbers) > 0 {
		last = numbers[len(numbers)-1]
	}
	for range max(1, keep-len(numbers)) {
		last++
		add = append(add, fmt.Sprintf("%s%d", autoPrefix, last))
	}
	for _, n := range numbers[:max(0, len(numbers)+len(add)-keep)] {
		remove = append(remove, fmt.Sprintf("%s%d", autoPrefix, n))
	}
	return add, remove
}
