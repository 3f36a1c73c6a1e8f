package inproc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
)

// quiet runs f beside an idle cluster, with a connection.
func quiet(t *testing.T, f func(ctx context.Context, l *lab, conn cluster.Conn)) {
	t.Helper()
	l, err := perform(t, experiment{seed: 5, pause: time.Second, length: 3 * time.Second, faults: func(ctx context.Context, l *lab) {
		conn, err := l.cl.Dial(ctx, "tester", "tablet-1")
		require.NoError(t, err)
		require.NoError(t, l.within(ctx, 30*time.Second, func(ctx context.Context) error {
			f(ctx, l, conn)
			return conn.Close(ctx)
		}))
	}})
	require.NoError(t, err)
	assert.Empty(t, l.judge(t.Context()))
}

func TestLogTables(t *testing.T) {
	quiet(t, func(ctx context.Context, _ *lab, conn cluster.Conn) {
		admin, log := conn.(cluster.Admin), conn.(cluster.Log)
		spec := cluster.TableSpec{Name: "events", Kind: cluster.LogTable, Buckets: 3, Replication: 3, MinISR: 2}
		_, err := admin.CreateTable(ctx, spec)
		require.NoError(t, err)
		n, _, err := log.Buckets(ctx, "events")
		require.NoError(t, err)
		assert.Equal(t, 3, n)
		for i := range 4 {
			base, _, err := log.Append(ctx, "events", 1, [][]byte{fmt.Appendf(nil, "a%d", i), fmt.Appendf(nil, "b%d", i)})
			require.NoError(t, err)
			assert.Equal(t, int64(2*i), base)
		}
		records, next, hw, _, err := log.Fetch(ctx, "events", 1, 3, 2)
		require.NoError(t, err)
		require.Len(t, records, 2)
		assert.Equal(t, "b1", string(records[0].Value))
		assert.Equal(t, "+A", records[0].Change)
		assert.Equal(t, int64(5), next)
		assert.Equal(t, int64(8), hw)
		records, next, _, _, err = log.Fetch(ctx, "events", 2, 0, 10)
		require.NoError(t, err)
		assert.Empty(t, records)
		assert.Zero(t, next)
		records, _, _, _, err = log.Fetch(ctx, "events", 1, 100, 10)
		require.NoError(t, err)
		require.NotEmpty(t, records, "out of range: from the start")
		assert.Zero(t, records[0].Offset)
	})
}

func TestChangelogOfAKVTable(t *testing.T) {
	quiet(t, func(ctx context.Context, _ *lab, conn cluster.Conn) {
		admin, kv, log := conn.(cluster.Admin), conn.(cluster.KV), conn.(cluster.Log)
		_, err := admin.CreateTable(ctx, cluster.TableSpec{Name: "one", Kind: cluster.KVTable, Buckets: 1, Replication: 3, MinISR: 2})
		require.NoError(t, err)
		for _, v := range []string{"1", "2", ""} {
			var value []byte
			if v != "" {
				value = []byte(v)
			}
			_, err := kv.Put(ctx, "one", "k", value)
			require.NoError(t, err)
		}
		got, _, err := kv.Get(ctx, "one", "k")
		require.NoError(t, err)
		assert.Nil(t, got, "deleted")
		records, _, _, _, err := log.Fetch(ctx, "one", 0, 0, 10)
		require.NoError(t, err)
		var changes []string
		for _, r := range records {
			changes = append(changes, r.Change+string(r.Value))
		}
		assert.Equal(t, []string{"+I1", "-U1", "+U2", "-D2"}, changes)
	})
}

func TestTablesComeAndGo(t *testing.T) {
	quiet(t, func(ctx context.Context, l *lab, conn cluster.Conn) {
		admin, kv := conn.(cluster.Admin), conn.(cluster.KV)
		spec := cluster.TableSpec{Name: "temp", Kind: cluster.KVTable, Buckets: 2, Replication: 3, MinISR: 2}
		for life := range 3 {
			_, err := admin.CreateTable(ctx, spec)
			require.NoError(t, err)
			_, err = admin.CreateTable(ctx, spec)
			assert.True(t, cluster.IsDefinite(err), err)
			value, _, err := kv.Get(ctx, "temp", "k")
			require.NoError(t, err)
			assert.Nil(t, value, "nothing of a former life")
			_, err = kv.Put(ctx, "temp", "k", fmt.Append(nil, life))
			require.NoError(t, err)
			_, err = admin.DropTable(ctx, "temp")
			require.NoError(t, err)
		}
		_, err := admin.DropTable(ctx, "temp")
		assert.True(t, cluster.IsDefinite(err), err)
		l.rest(ctx, time.Second, 2*time.Second)
		predicates, err := l.cl.Unconverged(ctx)
		require.NoError(t, err)
		assert.Empty(t, predicates)
	})
}

func TestPartitionsComeAndGo(t *testing.T) {
	quiet(t, func(ctx context.Context, _ *lab, conn cluster.Conn) {
		admin, kv := conn.(cluster.Admin), conn.(cluster.KV)
		_, err := admin.CreateTable(ctx, cluster.TableSpec{
			Name: "days", Kind: cluster.KVTable, Buckets: 2, Replication: 3, MinISR: 2, Partitioned: true,
		})
		require.NoError(t, err)
		for _, day := range []string{"mon", "tue"} {
			_, err = admin.CreatePartition(ctx, "days", day)
			require.NoError(t, err)
			_, err = kv.Put(ctx, "days["+day+"]", "k", []byte(day))
			require.NoError(t, err)
		}
		value, _, err := kv.Get(ctx, "days[mon]", "k")
		require.NoError(t, err)
		assert.Equal(t, "mon", string(value))
		_, err = admin.DropPartition(ctx, "days", "mon")
		require.NoError(t, err)
		_, err = admin.CreatePartition(ctx, "days", "mon")
		require.NoError(t, err)
		value, _, err = kv.Get(ctx, "days[mon]", "k")
		require.NoError(t, err)
		assert.Nil(t, value, "a new partition of an old name is empty")
	})
}
