package minizk

import "sync"

// buffers are shared by all connections: an idle one holds none.
var buffers sync.Pool //nolint:gochecknoglobals // a cache without state

// keepBuffer is the largest buffer that goes back to the pool.
const keepBuffer = 64 << 10

func getBuffer() []byte {
	if b, ok := buffers.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, 512)
}

func putBuffer(b []byte) {
	if cap(b) <= keepBuffer {
		buffers.Put(&b)
	}
}
