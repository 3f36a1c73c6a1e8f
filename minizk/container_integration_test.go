//go:build integration

package minizk_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

const zooCfg = `tickTime=500
dataDir=/data
clientPort=2181
admin.enableServer=false
4lw.commands.whitelist=*
maxClientCnxns=0
forceSync=%s
`

// container starts the real server and gives its address. TTL nodes are on;
// the sweep for empty containers is off, for it would take zxids at times of
// its own.
func container(tb testing.TB, forceSync bool, super string) string {
	tb.Helper()
	if out, err := exec.CommandContext(tb.Context(), "docker", "version").CombinedOutput(); err != nil {
		tb.Skipf("no Docker answers, so there is nothing to compare with: %v %s", err, out)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	sync := "no"
	if forceSync {
		sync = "yes"
	}
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		Started: true,
		ContainerRequest: testcontainers.ContainerRequest{
			Image:        "zookeeper:3.9.5",
			ExposedPorts: []string{"2181/tcp"},
			Env: map[string]string{
				"JVMFLAGS": "-Xmx512m -Dzookeeper.extendedTypesEnabled=true -Dznode.container.checkIntervalMs=86400000" +
					" -Dzookeeper.DigestAuthenticationProvider.superDigest=" + super,
			},
			Files: []testcontainers.ContainerFile{{
				Reader: strings.NewReader(fmt.Sprintf(zooCfg, sync)), ContainerFilePath: "/conf/zoo.cfg", FileMode: 0o644,
			}},
		},
	})
	if c != nil {
		tb.Cleanup(func() {
			// The test's own context has ended by now.
			require.NoError(tb, testcontainers.TerminateContainer(c, testcontainers.StopContext(context.Background())))
		})
	}
	require.NoError(tb, err)
	addr, err := c.PortEndpoint(ctx, "2181/tcp", "")
	require.NoError(tb, err)
	require.Eventually(tb, func() bool { return answers(addr) }, time.Minute, 50*time.Millisecond)
	return addr
}

func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write(jute.AppendFrame(nil, &jute.ConnectRequest{TimeOut: 2000, Passwd: make([]byte, 16)})); err != nil {
		return false
	}
	if _, err := jute.ReadFrame(conn, nil, 1<<20); err != nil {
		return false
	}
	// A session left behind would take a zxid when it expires.
	if _, err := conn.Write(jute.AppendFrame(nil, &jute.RequestHeader{Xid: 1, Op: jute.OpCloseSession})); err != nil {
		return false
	}
	_, err = jute.ReadFrame(conn, nil, 1<<20)
	return err == nil
}
