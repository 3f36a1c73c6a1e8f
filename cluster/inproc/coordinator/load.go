package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// load reads what ZooKeeper holds, opens the office, and settles every bucket.
// Nothing that an older term still has under way can change it any more: its
// writes are guarded by an epoch that is past.
func (t *term) load(ctx context.Context) error {
	if err := t.makeBase(ctx); err != nil {
		return err
	}
	seen, err := readTablets(ctx, t.z)
	if err != nil {
		return err
	}
	t.tablets = seen
	if err := t.syncTables(ctx); err != nil {
		return err
	}
	if t.over {
		return errTermOver
	}
	t.servers = t.tick()
	for _, s := range t.liveTablets() {
		t.openChannel(s.Server)
	}
	t.serve()
	t.post("settle all", t.settleAll)
	return nil
}

// settleAll is the first event of a term: every bucket whose leader is dead, or
// has restarted since it was elected, gets another; all others are told again as
// they stand, at the same leader epoch.
func (t *term) settleAll(ctx context.Context) {
	all := slices.Clone(t.order)
	for _, b := range all {
		t.tellReplicas(b)
	}
	t.replan(ctx, all, func(b *bucket) bool {
		// The leader registered after the LAI was last written.
		return t.policy.ReelectRestarted && b.act.stage == unconfirmed && b.zxid < t.tablets[b.lai.Leader].incarnation
	})
}

// makeBase creates the directories of the tree, guarded like every other write.
func (t *term) makeBase(ctx context.Context) error {
	for _, path := range protocol.BasePaths() {
		if err := t.makeNode(ctx, path, nil); err != nil {
			return err
		}
	}
	for _, path := range []string{protocol.TableCounterPath, protocol.PartitionCounterPath, protocol.WriterCounterPath} {
		if err := t.makeNode(ctx, path, protocol.EncodeCounter(0)); err != nil {
			return err
		}
	}
	return nil
}

func (t *term) makeNode(ctx context.Context, path string, data []byte) error {
	if _, err := t.z.exists(ctx, path); !errors.Is(err, host.ErrNoNode) {
		return err
	}
	there := func(ctx context.Context, z zk) (landing, error) {
		_, err := z.exists(ctx, path)
		if errors.Is(err, host.ErrNoNode) {
			return absent, nil
		}
		return landed, err
	}
	err := t.commit(ctx, "create "+path, []host.ZKOp{host.CreateOp(path, data, host.Persistent)}, there)
	if errors.Is(err, host.ErrNodeExists) {
		return nil
	}
	return err
}

// syncTables reads all tables and partitions, adds those that are not known and
// drops those that are no longer there (p). Assignments without a table are
// deletions that somebody began.
func (t *term) syncTables(ctx context.Context) error {
	names, err := t.z.children(ctx, protocol.TablesPath)
	if err != nil {
		return err
	}
	there := map[string]bool{} // assignments in use
	for _, name := range names {
		if err := t.syncTable(ctx, name, there); err != nil {
			return err
		}
	}
	for _, tb := range t.sortedTables() {
		for _, p := range tb.sortedParts() {
			if !there[p.assignment] {
				t.forgetPartition(tb, p)
			}
		}
		if !slices.Contains(names, tb.info.Name) {
			t.forgetTable(tb)
		}
	}
	return t.syncDeletions(ctx, there)
}

func (t *term) syncTable(ctx context.Context, name string, there map[string]bool) error {
	data, stat, err := t.z.get(ctx, protocol.TablePath(name))
	if errors.Is(err, host.ErrNoNode) || (err == nil && len(data) == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	node, err := protocol.DecodeTable(data)
	if err != nil {
		t.log.Warn("skip a table", zap.String("table", name), zap.Error(err))
		return nil
	}
	tb := t.tables[name]
	if tb != nil && tb.info.ID != node.TableID {
		for _, p := range tb.sortedParts() {
			t.forgetPartition(tb, p)
		}
		t.forgetTable(tb)
		tb = nil
	}
	if tb == nil {
		tb = t.addTable(node.Info(name), node.AutoPartitions())
	}
	tb.version = stat.Version
	if !tb.info.Partitioned {
		return t.syncPartition(ctx, tb, "", -1, there)
	}
	parts, err := t.z.children(ctx, protocol.TablePartitionsPath(name))
	if err != nil {
		return err
	}
	for _, part := range parts {
		data, _, err := t.z.get(ctx, protocol.PartitionPath(name, part))
		if errors.Is(err, host.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		node, err := protocol.DecodePartition(data)
		if err != nil {
			t.log.Warn("skip a partition", zap.String("partition", part), zap.Error(err))
			continue
		}
		if err := t.syncPartition(ctx, tb, part, node.PartitionID, there); err != nil {
			return err
		}
	}
	return nil
}

func (t *term) addTable(info protocol.TableInfo, auto int) *table {
	tb := &table{info: info, auto: auto, parts: map[string]*partition{}, changed: t.tick()}
	t.tables[info.Name] = tb
	return tb
}

// syncPartition adds a partition that is not known yet, with its buckets' LAIs.
func (t *term) syncPartition(ctx context.Context, tb *table, name string, id int64, there map[string]bool) error {
	path := protocol.TableAssignmentPath(tb.info.ID)
	if name != "" {
		path = protocol.PartitionAssignmentPath(id)
	}
	there[path] = true
	if p := tb.parts[name]; p != nil {
		if p.id == id {
			return nil
		}
		t.forgetPartition(tb, p)
	}
	p, err := t.readPartition(ctx, tb, name, id, path)
	if errors.Is(err, host.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	t.addPartition(tb, p)
	return nil
}

// readPartition reads an assignment and the LAIs below it (p).
func (t *term) readPartition(ctx context.Context, tb *table, name string, id int64, path string) (*partition, error) {
	data, _, err := t.z.get(ctx, path)
	if err != nil {
		return nil, err
	}
	node, err := protocol.DecodeAssignment(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	p := newPartition(tb, name, id, path, node.Replicas())
	for _, b := range p.buckets {
		held, err := t.readLAI(ctx, t.z, b)
		if err != nil {
			return nil, err
		}
		if held.stored && held.lai.CoordinatorEpoch > t.epoch && t.policy.BumpEpoch {
			t.fence(fmt.Sprintf("%s was written by epoch %d", b.id, held.lai.CoordinatorEpoch))
			return nil, errTermOver
		}
		if held.stored {
			b.stored, b.lai, b.version, b.zxid = true, held.lai, held.version, held.zxid
			b.act = standing(key{b.lai.LeaderEpoch, t.tablets[b.lai.Leader].incarnation})
		}
	}
	return p, nil
}

// syncDeletions takes up the deletions that are not finished: assignments of no
// table.
func (t *term) syncDeletions(ctx context.Context, there map[string]bool) error {
	for _, d := range t.gone {
		there[d.part.assignment] = true
	}
	for _, dir := range []string{protocol.TableAssignmentsPath, protocol.PartitionAssignmentsPath} {
		ids, err := t.z.children(ctx, dir)
		if err != nil {
			return err
		}
		for _, name := range ids {
			path := dir + "/" + name
			id, err := strconv.ParseInt(name, 10, 64)
			if err != nil || there[path] {
				continue
			}
			if err := t.takeUpDeletion(ctx, path, id, dir == protocol.PartitionAssignmentsPath); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *term) takeUpDeletion(ctx context.Context, path string, id int64, isPartition bool) error {
	data, _, err := t.z.get(ctx, path)
	if errors.Is(err, host.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	node, err := protocol.DecodeAssignment(data)
	if err != nil || node.Table == "" {
		t.log.Warn("skip an assignment of no table", zap.String("path", path), zap.Error(err))
		return nil
	}
	info := protocol.TableInfo{Name: node.Table, ID: id, Partitioned: isPartition}
	partitionID := int64(-1)
	if isPartition && node.TableID != nil {
		info.ID, partitionID = *node.TableID, id
	}
	p, err := t.readPartition(ctx, &table{info: info}, node.Partition, partitionID, path)
	if err != nil {
		return err
	}
	t.beginDeletion(p)
	return nil
}

// watchTables looks for tables and partitions that came or went by another hand.
func (t *term) watchTables(ctx context.Context) {
	for _, dir := range []string{protocol.TablesPath, protocol.TableAssignmentsPath, protocol.PartitionAssignmentsPath} {
		t.h.Go(ctx, "watch "+dir, func(ctx context.Context) {
			for {
				ids, watch, err := t.z.childrenW(ctx, dir)
				if err != nil {
					return // the session is over
				}
				t.post("tables changed", func(ctx context.Context) { t.tablesChanged(ctx, dir, ids) })
				if _, err := watch.Wait(ctx); err != nil {
					return
				}
			}
		})
	}
}

// tablesChanged reads the tables again if one, or an assignment, is there that is
// not known, or the other way round; what this term did itself is known already.
func (t *term) tablesChanged(ctx context.Context, dir string, names []string) {
	known := map[string]bool{}
	for _, tb := range t.sortedTables() {
		known[protocol.TablePath(tb.info.Name)] = true
		for _, p := range tb.sortedParts() {
			known[p.assignment] = true
		}
	}
	for _, d := range t.gone {
		known[d.part.assignment] = true
	}
	same := true
	for _, name := range names {
		path := dir + "/" + name
		same = same && known[path]
		delete(known, path)
	}
	for path := range known { // order cannot matter
		same = same && !strings.HasPrefix(path, dir+"/")
	}
	if same {
		return
	}
	if err := t.syncTables(ctx); err != nil {
		t.log.Info("read tables again", zap.Error(err))
		return
	}
	t.settleNew(ctx)
}

// settleNew gives new buckets their first LAI, and tells those that were found.
func (t *term) settleNew(ctx context.Context) {
	var fresh []*bucket
	for _, b := range t.order {
		if b.state() == bucketNew {
			fresh = append(fresh, b)
		} else if b.act.stage == unconfirmed {
			t.tellReplicas(b)
		}
	}
	t.replan(ctx, fresh, func(*bucket) bool { return false })
	t.wake()
}
