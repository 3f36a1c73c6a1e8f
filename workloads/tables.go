package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/harness"
)

// setupPause is the pause between two tries to create a table.
const setupPause = 200 * time.Millisecond

func dial(ctx context.Context, env harness.Env, name string) (cluster.Conn, error) {
	conn, err := env.Cluster.Dial(ctx, cluster.NodeID(name), "")
	if err != nil {
		return nil, fmt.Errorf("dial as %s: %w", name, err)
	}
	return conn, nil
}

// calendar is the partitioned table beside a workload's own: the coordinator in
// office creates its partitions in the background, and an old leader that
// wakes in the middle of that is one of the faults.
func calendar(o harness.Options) cluster.TableSpec {
	return cluster.TableSpec{
		Name: "calendar", Kind: cluster.LogTable, Buckets: 1, Replication: min(o.Replication, 2), MinISR: 1, Partitioned: true,
		AutoPartitions: 3,
	}
}

// createTables creates the tables and returns once a client can see each. A
// system without partitioned tables goes without them.
func createTables(ctx context.Context, env harness.Env, specs ...cluster.TableSpec) error {
	conn, err := dial(ctx, env, "setup")
	if err != nil {
		return err
	}
	admin, ok := conn.(cluster.Admin)
	if !ok {
		return fmt.Errorf("create tables: %w", cluster.ErrUnsupported)
	}
	for _, spec := range specs {
		if err := createTable(ctx, env, admin, spec); err != nil {
			return errors.Join(err, conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

// createTable tries until the table is there. After a try of unknown outcome it
// may be there already, which is as good.
func createTable(ctx context.Context, env harness.Env, admin cluster.Admin, spec cluster.TableSpec) error {
	log, _ := admin.(cluster.Log)
	for {
		_, err := admin.CreateTable(ctx, spec)
		if err == nil || spec.Partitioned && errors.Is(err, cluster.ErrUnsupported) {
			return nil
		}
		if log != nil && !spec.Partitioned {
			if n, _, seen := log.Buckets(ctx, spec.Name); seen == nil && n == spec.Buckets {
				return nil
			}
		}
		if env.Host.Sleep(ctx, setupPause) != nil {
			return fmt.Errorf("create table %s: %w", spec.Name, err)
		}
	}
}
