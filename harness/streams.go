package harness

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Stream is the random stream of one named actor of a run. Each actor has its
// own, so that one more draw by one of them does not reshuffle the others and a
// shrunk schedule keeps its meaning.
func Stream(seed uint64, name string) *rand.Rand {
	key := binary.BigEndian.AppendUint64(nil, seed)
	return rand.New(rand.NewChaCha8(sha256.Sum256(append(key, name...))))
}
