package tablet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// A log file is a sequence of frames, one a batch: length and CRC of the
// payload (4 bytes each, little-endian), then the payload. One frame a batch
// makes batches whole after a torn write too.
const frameHead = 8

// errTorn marks the first frame that is not whole.
var errTorn = errors.New("torn frame")

func appendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func appendBytes(b, v []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(v))), v...) }

// appendHeader encodes what the records of a batch have in common.
func appendHeader(b []byte, r *protocol.LogRecord) []byte {
	b = appendUint(b, uint64(r.Offset))
	b = binary.AppendVarint(b, int64(r.Epoch))
	b = binary.AppendVarint(b, r.Writer)
	b = binary.AppendVarint(b, int64(r.Seq))
	return appendUint(appendUint(b, uint64(r.Batch)), uint64(r.Index))
}

// appendRecord encodes one record of a batch: change, key, value; a nil value
// differs from an empty one.
func appendRecord(b []byte, r *protocol.LogRecord) []byte {
	change := byte(r.Change) << 1
	if r.Value != nil {
		change |= 1
	}
	b = append(b, change)
	b = append(appendUint(b, uint64(len(r.Key))), r.Key...)
	if r.Value != nil {
		b = appendBytes(b, r.Value)
	}
	return b
}

// appendFrame encodes the batch that starts at offset, as far as the log and to
// go: a planted bug may have cut it.
func appendFrame(b []byte, l *changelog, offset, to int64) ([]byte, int64) {
	at := len(b)
	b = append(b, make([]byte, frameHead)...)
	b = appendHeader(b, l.at(offset))
	for first := offset; offset < to && (offset == first || l.at(offset).Index != 0); offset++ {
		b = appendRecord(b, l.at(offset))
	}
	payload := b[at+frameHead:]
	binary.LittleEndian.PutUint32(b[at:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[at+4:], crc32.ChecksumIEEE(payload))
	return b, offset
}

// appendFrames encodes the batches of [from, to).
func appendFrames(b []byte, l *changelog, from, to int64) []byte {
	for from < to {
		b, from = appendFrame(b, l, from, to)
	}
	return b
}

// decodeLog reads the frames of a file into an empty log and returns how many
// bytes are good. What follows the first bad frame is not part of the log.
func decodeLog(file []byte, l *changelog) int64 {
	good := 0
	for len(file)-good >= frameHead {
		n := int(binary.LittleEndian.Uint32(file[good:]))
		sum := binary.LittleEndian.Uint32(file[good+4:])
		if n > len(file)-good-frameHead {
			break
		}
		payload := file[good+frameHead : good+frameHead+n]
		if crc32.ChecksumIEEE(payload) != sum {
			break
		}
		records, err := decodeBatch(payload)
		if err != nil || len(records) == 0 || records[0].Offset != l.end {
			break
		}
		for _, r := range records {
			l.append(r)
		}
		good += frameHead + n
	}
	return int64(good)
}

// decodeBatch decodes the payload of one frame.
func decodeBatch(b []byte) ([]protocol.LogRecord, error) {
	d := decoder{b: b}
	head := protocol.LogRecord{
		Offset: int64(d.uint()), Epoch: int(d.int()), Writer: d.int(), Seq: int(d.int()), Batch: int(d.uint()), Index: int(d.uint()),
	}
	var out []protocol.LogRecord
	for !d.bad && len(d.b) > 0 {
		r := head
		r.Index, r.Offset = head.Index+len(out), head.Offset+int64(len(out))
		change := d.byte()
		r.Change = protocol.Change(change >> 1)
		r.Key = string(d.bytes())
		if change&1 != 0 {
			r.Value = append([]byte{}, d.bytes()...)
		}
		out = append(out, r)
	}
	if d.bad {
		return nil, fmt.Errorf("decode batch: %w", errTorn)
	}
	return out, nil
}

// decoder reads fields; after a short read everything is zero and bad is set.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	return d.took(v, n)
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	return int64(d.took(uint64(v), n))
}

func (d *decoder) took(v uint64, n int) uint64 {
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}
