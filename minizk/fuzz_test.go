package minizk_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fencepost-dev/fencepost/minizk"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// FuzzServer throws bytes at a server, from the first one on or behind a
// greeting that opens a session. It must answer or hang up, serve another
// client all the while, and leave nothing behind.
func FuzzServer(f *testing.F) {
	p := newProgram(1)
	r := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		var b []byte
		for i := range 1 + r.IntN(4) {
			k := p.call()
			b = jute.AppendFrame(b, &jute.RequestHeader{Xid: int32(i + 1), Op: k.op}, k.req)
		}
		f.Add(true, b)
	}
	f.Add(false, []byte("mntr"))
	f.Add(false, []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(false, jute.AppendFrame(nil, &jute.ConnectRequest{TimeOut: -5, SessionID: 7, Passwd: []byte("x")}))

	before := goleak.IgnoreCurrent()
	srv, err := minizk.Start(minizk.Config{ExtendedTypes: true, Tick: 10 * time.Millisecond, MaxSessionTimeout: time.Minute, SweepEvery: 20 * time.Millisecond})
	require.NoError(f, err)
	f.Cleanup(func() {
		require.Eventually(f, func() bool { return srv.Count().Conns == 0 }, 10*time.Second, time.Millisecond)
		require.NoError(f, srv.Close())
		goleak.VerifyNone(f, before)
	})
	f.Fuzz(func(t *testing.T, greeted bool, b []byte) {
		c, err := net.DialTimeout("tcp", srv.Addr(), 5*time.Second)
		require.NoError(t, err)
		defer hangUp(t, c)
		require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
		if greeted {
			b = append(jute.AppendFrame(nil, &jute.ConnectRequest{TimeOut: 20}), b...)
		}
		if _, err := c.Write(b); err == nil {
			_ = c.(*net.TCPConn).CloseWrite() // the server may have been first
		}
		_, err = io.Copy(io.Discard, c)
		var ne net.Error
		require.False(t, errors.As(err, &ne) && ne.Timeout(), "the server neither answers nor hangs up")

		healthy := dialRaw(t, srv.Addr(), 60000)
		healthy.ok(jute.OpPing, &jute.NoBody{})
		healthy.ok(jute.OpCloseSession, &jute.NoBody{})
		hangUp(t, healthy.Conn)
	})
}

// hangUp closes without leaving the port in TIME-WAIT: millions of tries would
// use them all up.
func hangUp(t *testing.T, c net.Conn) {
	t.Helper()
	if tcp, ok := c.(*net.TCPConn); ok {
		require.NoError(t, tcp.SetLinger(0))
	}
	_ = c.Close() // the server may have been first
}
