package minizk_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// Load is measured between processes: this test binary starts itself again as
// the client, and as minizk's server, so that neither pays for the other.
//
//	MINIZK_ROLE   serve | load | sessions
//	MINIZK_ADDR   the server, for the clients
//	MINIZK_SHAPE  sessions×outstanding×milliseconds, for load; a number, for sessions

var sessions = flag.Int("minizk.sessions", 1000, "how many sessions the tests of many sessions open; 10000 is the goal")

func TestMain(m *testing.M) {
	role := os.Getenv("MINIZK_ROLE")
	if role == "" {
		os.Exit(m.Run()) //nolint:forbidigo // this is a main
	}
	if err := play(role, os.Getenv("MINIZK_ADDR"), os.Getenv("MINIZK_SHAPE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // likewise
	}
}

// play is the main of a process that a test has started.
func play(role, addr, shape string) error {
	switch role {
	case "serve":
		return serve()
	case "load":
		var conns, outstanding, millis int
		if _, err := fmt.Sscanf(shape, "%dx%dx%d", &conns, &outstanding, &millis); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, load(addr, conns, outstanding, time.Duration(millis)*time.Millisecond))
		return nil
	case "sessions":
		n, err := strconv.Atoi(shape)
		if err != nil {
			return err
		}
		return manySessions(addr, n)
	default:
		return fmt.Errorf("no role %q", role)
	}
}

// serve runs a server until its input ends. A line asks for its memory.
func serve() error {
	srv, err := minizk.Start(minizk.Config{MaxSessionTimeout: 10 * time.Minute})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, srv.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		runtime.GC()
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		n := srv.Count()
		fmt.Fprintln(os.Stdout, n.Sessions, n.Conns, n.Ephemerals, resident(), mem.HeapAlloc+mem.StackInuse)
	}
	return srv.Close()
}

// resident is the resident set of this process in bytes, 0 where unknown.
func resident() int {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	kb, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return kb << 10
}

// failure makes helpers usable in a process without tests.
type failure struct{ testing.TB }

func (failure) Helper()                      {}
func (failure) Cleanup(func())               {}
func (failure) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (failure) FailNow()                     { panic("failed") }

// load sets data from a number of sessions, each with so many requests under
// way, and gives the rate per second.
func load(addr string, sessions, outstanding int, d time.Duration) int {
	var total atomic.Int64
	var wg sync.WaitGroup
	conns := make([]*raw, sessions)
	for i := range conns {
		c := dialRaw(failure{}, addr, 30000)
		path := fmt.Sprintf("/load-%d", i)
		_ = c.code(jute.OpCreate, create(path, 0)) // it may be there from an earlier load
		conns[i] = c
	}
	end := time.Now().Add(d)
	for i, c := range conns {
		wg.Go(func() {
			var batch []byte
			req := &jute.SetDataRequest{Path: fmt.Sprintf("/load-%d", i), Data: make([]byte, 100), Version: -1}
			for k := range outstanding {
				batch = jute.AppendFrame(batch, &jute.RequestHeader{Xid: int32(k + 1), Op: jute.OpSetData}, req)
			}
			in := bufio.NewReaderSize(c.Conn, 64<<10)
			var buf []byte
			for time.Now().Before(end) {
				if _, err := c.Write(batch); err != nil {
					panic(err)
				}
				for range outstanding {
					frame, err := jute.ReadFrame(in, buf, 1<<20)
					if err != nil {
						panic(err)
					}
					buf = frame[:0]
				}
				total.Add(int64(outstanding))
			}
		})
	}
	wg.Wait()
	return int(float64(total.Load()) / d.Seconds())
}

// manySessions opens sessions with an ephemeral node each and keeps quiet until
// its input ends.
func manySessions(addr string, n int) error {
	c := dialRaw(failure{}, addr, 60000)
	c.ok(jute.OpCreate, create("/members", 0))
	open := make([]*raw, n) // an unreachable connection would be closed by the collector
	for i := range open {
		s := dialRaw(failure{}, addr, 60000)
		open[i] = s
		if code := s.code(jute.OpCreate, create(fmt.Sprintf("/members/m-%d", i), jute.FlagEphemeral)); code != jute.OK {
			return code
		}
	}
	fmt.Fprintln(os.Stdout, "open")
	_, err := io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(c)
	runtime.KeepAlive(open)
	return err
}

// process is a child that plays a role.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func child(tb testing.TB, role, addr, shape string) *process {
	tb.Helper()
	self, err := os.Executable()
	require.NoError(tb, err)
	// It ends by the end of its input, in the clean-up.
	cmd := exec.CommandContext(context.Background(), self)
	cmd.Env = append(os.Environ(), "MINIZK_ROLE="+role, "MINIZK_ADDR="+addr, "MINIZK_SHAPE="+shape)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(tb, err)
	out, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = in.Close() // it may have ended
		_ = cmd.Wait()
	})
	return &process{cmd, in, bufio.NewScanner(out)}
}

// line reads the child's next line.
func (p *process) line(tb testing.TB) string {
	tb.Helper()
	require.True(tb, p.out.Scan(), "the child has ended")
	return p.out.Text()
}

// TestMemoryOfManySessions: ten thousand sessions with an ephemeral node each
// cost less than 200 MB.
func TestMemoryOfManySessions(t *testing.T) {
	n := *sessions
	server := child(t, "serve", "", "")
	addr := server.line(t)
	base := memory(t, server)
	require.Zero(t, base.sessions)
	clients := child(t, "sessions", addr, strconv.Itoa(n))
	require.Equal(t, "open", clients.line(t))
	full := memory(t, server)
	require.Equal(t, n+1, full.sessions)
	require.Equal(t, n, full.ephemerals)
	t.Logf("%d sessions: %d MB resident (%d MB before), %d MB live", n, full.resident>>20, base.resident>>20, full.live>>20)
	require.Less(t, full.resident, 200<<20)
	require.Equal(t, n+1, full.conns)
}

type sizes struct{ sessions, conns, ephemerals, resident, live int }

func memory(tb testing.TB, server *process) sizes {
	tb.Helper()
	_, err := io.WriteString(server.in, "memory\n")
	require.NoError(tb, err)
	var s sizes
	_, err = fmt.Sscan(server.line(tb), &s.sessions, &s.conns, &s.ephemerals, &s.resident, &s.live)
	require.NoError(tb, err)
	return s
}

// TestManyExpireTogether: sessions that fall silent at the same time end within
// two ticks of their time.
func TestManyExpireTogether(t *testing.T) {
	const tick = 500 * time.Millisecond
	n := *sessions
	srv := start(t, minizk.Config{Tick: tick, MaxSessionTimeout: time.Hour})
	c := dialRaw(t, srv.Addr(), 3_600_000)
	c.ok(jute.OpCreate, create("/members", 0))
	for i := range n {
		s := dialRaw(failure{}, srv.Addr(), 60_000)
		s.ok(jute.OpCreate, create(fmt.Sprintf("/members/m-%d", i), jute.FlagEphemeral))
		_ = s.Close() // the session stays
	}
	require.Equal(t, n, srv.Count().Ephemerals)
	from := time.Now()
	srv.SkipTime(2 * time.Minute)
	took := time.Since(from)
	require.Zero(t, srv.Count().Ephemerals)
	require.Len(t, srv.Sessions(), 1)
	t.Logf("%d sessions and their nodes ended in %v", n, took)
	require.Less(t, took, 2*tick)
	c.ok(jute.OpPing, &jute.NoBody{})
}

// BenchmarkSequentialSet is one session that waits for every reply; its client
// is in the same process.
func BenchmarkSequentialSet(b *testing.B) {
	srv := start(b, minizk.Config{})
	c := dialRaw(b, srv.Addr(), 30000)
	require.NoError(b, c.SetDeadline(time.Time{}))
	c.ok(jute.OpCreate, create("/a", 0))
	req := &jute.SetDataRequest{Path: "/a", Data: make([]byte, 100), Version: -1}
	b.ReportAllocs()
	for b.Loop() {
		c.send(jute.OpSetData, req)
		if _, _, err := c.receive(); err != nil {
			b.Fatal(err)
		}
	}
}
