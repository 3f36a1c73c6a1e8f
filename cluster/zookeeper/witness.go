package zookeeper

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// Transaction is one entry of a server's transaction log.
type Transaction struct {
	Session int64
	Cxid    int32 // the client's own number of the request
	Zxid    int64
	Time    time.Time // of the leader's clock, in milliseconds
	Op      string    // create, set, delete, multi, createSession, closeSession, error, …
	Paths   []string  // those changed; of a failed transaction none
	Err     jute.Code // OK if it was committed
}

// logMax is more than a server writes into one entry.
const logMax = 64 << 20

// ReadLog reads the transaction logs in a folder that CopyLog has filled, in
// the order of the zxids. The end of a log that was copied while the server
// wrote is left out.
func ReadLog(dir string) ([]Transaction, error) {
	files, err := filepath.Glob(filepath.Join(dir, "log.*"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read transaction log: no log.* in %s", dir)
	}
	var all []Transaction
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		part, err := readLogFile(bufio.NewReader(f))
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("read transaction log %s: %w", file, err)
		}
		all = append(all, part...)
	}
	slices.SortStableFunc(all, func(a, b Transaction) int {
		return int(min(max(a.Zxid-b.Zxid, -1), 1))
	})
	return slices.CompactFunc(all, func(a, b Transaction) bool { return a.Zxid == b.Zxid }), nil
}

// readLogFile reads one file: a header of 16 bytes, then entries of a checksum,
// a length, the transaction, and the letter B. Zeros fill the rest.
func readLogFile(r io.Reader) ([]Transaction, error) {
	head := make([]byte, 16)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if string(head[:4]) != "ZKLG" {
		return nil, errors.New("header: not a transaction log")
	}
	var all []Transaction
	for {
		head := make([]byte, 12)
		if _, err := io.ReadFull(r, head); err != nil {
			return all, nil //nolint:nilerr // the file ends where the server was
		}
		sum, n := binary.BigEndian.Uint64(head), binary.BigEndian.Uint32(head[8:])
		if n == 0 {
			return all, nil
		}
		if n > logMax {
			return nil, fmt.Errorf("entry %d: %d bytes", len(all), n)
		}
		entry := make([]byte, n+1)
		if _, err := io.ReadFull(r, entry); err != nil || entry[n] != 'B' {
			return all, nil //nolint:nilerr // an entry half written
		}
		if uint64(adler32.Checksum(entry[:n])) != sum {
			return nil, fmt.Errorf("entry %d: checksum differs", len(all))
		}
		txn, err := decodeTransaction(entry[:n])
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", len(all), err)
		}
		all = append(all, txn)
	}
}

func decodeTransaction(entry []byte) (Transaction, error) {
	d := jute.NewDecoderLimit(entry, logMax)
	t := Transaction{Session: d.Int64(), Cxid: d.Int32(), Zxid: d.Int64()}
	t.Time = time.UnixMilli(d.Int64())
	op := jute.OpCode(d.Int32())
	t.Op = transactionName(op)
	if op != jute.OpMulti {
		t.Paths, t.Err = changed(d, op)
		return t, d.Err()
	}
	for range d.Count(8) {
		op := jute.OpCode(d.Int32())
		paths, code := changed(jute.NewDecoderLimit(d.Buffer(), logMax), op)
		t.Paths = append(t.Paths, paths...)
		// The operations beside the failing one say OK or "runtime inconsistency".
		if code != jute.OK && (t.Err == jute.OK || t.Err == jute.RuntimeInconsistency) {
			t.Err = code
		}
	}
	if t.Err != jute.OK {
		t.Paths = nil
	}
	return t, d.Err()
}

// changed reads what one operation changed, or the code with which it failed.
func changed(d *jute.Decoder, op jute.OpCode) ([]string, jute.Code) {
	switch op {
	case jute.OpError:
		return nil, jute.Code(d.Int32())
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL,
		jute.OpDelete, jute.OpDeleteContainer, jute.OpSetData, jute.OpSetACL:
		return []string{d.String()}, jute.OK
	case jute.OpCloseSession:
		if d.Left() > 4 { // since 3.6 the ephemeral nodes are named
			return d.Strings(), jute.OK
		}
		return nil, jute.OK
	default:
		return nil, jute.OK
	}
}

// transactionName names an operation as history.Txn does.
func transactionName(op jute.OpCode) string {
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		return "create"
	case jute.OpSetData:
		return "set"
	case jute.OpDelete, jute.OpDeleteContainer:
		return "delete"
	default:
		return op.String()
	}
}
