//go:build integration

package minizk_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// eachServer runs a test against minizk and against the real server.
func eachServer(t *testing.T, f func(t *testing.T, addr string)) {
	t.Helper()
	t.Run("minizk", func(t *testing.T) { f(t, start(t, minizk.Config{}).Addr()) })
	t.Run("zookeeper", func(t *testing.T) { f(t, container(t, false, "none:none")) })
}

// TestLimitsOfFrames: a frame of exactly jute.maxbuffer passes, one byte more
// ends the connection and leaves the session.
func TestLimitsOfFrames(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		t.Helper()
		c := dialRaw(t, addr, 4000)
		c.ok(jute.OpCreate, create("/a", 0))
		around := len(jute.Marshal(&jute.RequestHeader{})) + len(jute.Marshal(&jute.SetDataRequest{Path: "/a", Data: []byte{}}))
		req := &jute.SetDataRequest{Path: "/a", Data: make([]byte, jute.DefaultMaxBuffer-around), Version: -1}
		c.ok(jute.OpSetData, req)
		require.Len(t, c.ok(jute.OpGetData, get("/a")).(*jute.GetDataResponse).Data, len(req.Data), "replies may be longer")
		req.Data = append(req.Data, 0)
		c.send(jute.OpSetData, req)
		c.ended()
		again := c.again(addr)
		require.Equal(t, c.id, again.id)
		stat := again.ok(jute.OpExists, get("/a")).(*jute.StatResponse).Stat
		require.EqualValues(t, 1, stat.Version)
		again.ok(jute.OpCloseSession, &jute.NoBody{})
	})
}

// TestTimesOfExpiry: silent sessions end at their time-out rounded up to a tick,
// or one tick later.
func TestTimesOfExpiry(t *testing.T) {
	const timeout, tick = 2 * time.Second, 500 * time.Millisecond
	eachServer(t, func(t *testing.T, addr string) {
		t.Helper()
		watcher := dialRaw(t, addr, 10000)
		gone := make([]time.Duration, 8)
		for i := range gone {
			path := "/e" + string(rune('a'+i))
			c := dialRaw(t, addr, int32(timeout.Milliseconds()))
			last := time.Now() // what the server hears of the session is after this
			c.ok(jute.OpCreate, create(path, jute.FlagEphemeral))
			watcher.ok(jute.OpExists, watch(path))
			go func() {
				_, _ = io.Copy(io.Discard, c) // until the server hangs up
				gone[i] = time.Since(last)
			}()
			time.Sleep(tick / 7) //nolint:forbidigo // the phase of the tick is what varies
		}
		for range gone {
			frame, err := jute.ReadFrame(watcher.Conn, nil, 1<<20)
			require.NoError(t, err)
			require.NotEmpty(t, frame)
		}
		time.Sleep(tick) //nolint:forbidigo // for the hang-ups, which follow the events
		for i, d := range gone {
			require.Greater(t, d, timeout-50*time.Millisecond, "session %d", i)
			require.Less(t, d, timeout+2*tick+500*time.Millisecond, "session %d", i)
		}
		t.Log(gone)
	})
}

// TestFirstBytesThatAreNoGreeting: the connection ends without an answer.
func TestFirstBytesThatAreNoGreeting(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		t.Helper()
		for name, b := range map[string][]byte{
			"short greeting":    {0, 0, 0, 5, 1, 2, 3, 4, 5},
			"negative length":   {0xff, 0xff, 0xff, 0xf0},
			"length of a novel": {0x7f, 0xff, 0xff, 0xff},
			"an unknown word":   []byte("what"),
		} {
			c := dialTCP(t, addr)
			_, err := c.Write(b)
			require.NoError(t, err)
			require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
			answer, err := io.ReadAll(c)
			require.Empty(t, answer, name)
			_ = err // a reset is as good as an end
		}
	})
}
