package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// BucketID names one bucket of one table for good: "orders#7/3", or
// "orders#7[2026-12-01#4]/3" for a bucket of a partition. The numbers behind #
// are ZooKeeper's ids, so a table dropped and created again has other buckets.
type BucketID string

// NewBucket builds the id. Partition is "" and partitionID -1 for a table
// without partitions.
func NewBucket(table string, tableID int64, partition string, partitionID int64, bucket int) BucketID {
	if partition == "" {
		return BucketID(fmt.Sprintf("%s#%d/%d", table, tableID, bucket))
	}
	return BucketID(fmt.Sprintf("%s#%d[%s#%d]/%d", table, tableID, partition, partitionID, bucket))
}

// BucketParts is a BucketID taken apart. PartitionID is -1 and Partition ""
// where the table has no partitions.
type BucketParts struct {
	Table       string
	TableID     int64
	Partition   string
	PartitionID int64
	Bucket      int
}

// Parts takes the id apart and refuses what NewBucket did not make.
func (b BucketID) Parts() (BucketParts, error) {
	bad := func() (BucketParts, error) {
		return BucketParts{}, fmt.Errorf("parse bucket %q: want table#id/bucket or table#id[partition#id]/bucket", string(b))
	}
	head, bucket, ok := cutLast(string(b), "/")
	if !ok {
		return bad()
	}
	p := BucketParts{PartitionID: -1}
	var err error
	if p.Bucket, err = strconv.Atoi(bucket); err != nil {
		return bad()
	}
	if body, isPartition := strings.CutSuffix(head, "]"); isPartition {
		table, partition, found := strings.Cut(body, "[")
		if !found {
			return bad()
		}
		name, id, found := cutLast(partition, "#")
		if p.PartitionID, err = strconv.ParseInt(id, 10, 64); err != nil || !found {
			return bad()
		}
		p.Partition, head = name, table
	}
	name, id, ok := cutLast(head, "#")
	if p.TableID, err = strconv.ParseInt(id, 10, 64); err != nil || !ok {
		return bad()
	}
	p.Table = name
	return p, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
