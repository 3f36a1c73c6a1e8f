package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestParse(t *testing.T) {
	for spec, want := range map[string]Provider{
		"":                   Auto{Docker: Docker{Image: "img"}, Embedded: Embedded{}},
		"auto":               Auto{Docker: Docker{Image: "img"}, Embedded: Embedded{}},
		"docker":             Docker{Image: "img"},
		"embedded":           Embedded{},
		"zk1:2181":           External{Addresses: []string{"zk1:2181"}},
		"zk1:2181, zk2:2181": External{Addresses: []string{"zk1:2181", "zk2:2181"}},
		"[::1]:2181":         External{Addresses: []string{"[::1]:2181"}},
	} {
		got, err := Parse(spec, "img")
		require.NoError(t, err, spec)
		require.Equal(t, want, got, spec)
	}
	for _, spec := range []string{"dokcer", "zk1", ":2181", "zk1:", "zk1:2181,", ","} {
		_, err := Parse(spec, "")
		require.ErrorContains(t, err, "HOST:PORT", spec)
	}
}

func TestConfig(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	require.Error(t, Config{Servers: 9}.Validate())
	require.Error(t, Config{Servers: -1}.Validate())
	require.Error(t, Config{Tick: time.Millisecond}.Validate())
	require.Equal(t, `4lw.commands.whitelist=*
admin.enableServer=false
clientPort=2181
dataDir=/data
forceSync=no
initLimit=20
maxClientCnxns=0
maxSessionTimeout=600000
minSessionTimeout=1000
preAllocSize=1024
syncLimit=10
tickTime=500
`, zooCfg(Config{}.withDefaults()))
	three := zooCfg(Config{Servers: 3, ForceSync: true, Tick: time.Second}.withDefaults())
	require.Contains(t, three, "server.1=zookeeper-0:2888:3888\nserver.2=zookeeper-1:2888:3888\nserver.3=zookeeper-2:2888:3888\n")
	require.Contains(t, three, "forceSync=yes\n")
	require.Contains(t, three, "minSessionTimeout=2000\n")
}

func TestOwners(t *testing.T) {
	me := self()
	got, ours := ownerOf(me.labels())
	require.True(t, ours)
	require.Equal(t, me, got)
	require.False(t, me.dead())
	_, ours = ownerOf(owner{}.labels())
	require.False(t, ours, "a container that is kept belongs to nobody")
	_, ours = ownerOf(map[string]string{"other": "label"})
	require.False(t, ours)

	child := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, child.Start())
	start, _ := processStart(child.Process.Pid)
	require.NoError(t, child.Wait())
	other := me
	other.pid, other.start = child.Process.Pid, start
	require.True(t, other.dead(), "it has ended")
	reused := me
	reused.start = "1"
	require.True(t, reused.dead(), "another process has its number")
	rebooted := me
	rebooted.boot = "before"
	require.True(t, rebooted.dead())
	elsewhere := other
	elsewhere.host = "another machine"
	require.False(t, elsewhere.dead(), "nothing is known of it")
}

// stub is a provider that does as told.
type stub struct {
	server Server
	err    error
}

func (s stub) Start(context.Context, Config) (Server, error) { return s.server, s.err }

func TestAutoSaysWhatItTook(t *testing.T) {
	none := stub{err: noDocker(errors.New("connection refused"))}
	require.ErrorIs(t, none.err, ErrNoDocker)
	require.ErrorContains(t, none.err, "--zookeeper embedded")
	here := stub{server: external{addresses: []string{"here:1"}}}
	s, err := Auto{Docker: none, Embedded: here}.Start(t.Context(), Config{})
	require.NoError(t, err)
	require.Contains(t, s.Info().String(), "docker does not answer")
	_, ok := As[Witness](s)
	require.False(t, ok)
	inner, ok := As[external](s)
	require.True(t, ok)
	require.Equal(t, []string{"here:1"}, inner.addresses)
	s, err = Auto{Docker: here, Embedded: stub{err: ErrUnavailable}}.Start(t.Context(), Config{})
	require.NoError(t, err)
	require.Contains(t, s.Info().String(), "docker answers")

	_, err = Auto{Docker: stub{err: ErrImageMissing}, Embedded: here}.Start(t.Context(), Config{})
	require.ErrorIs(t, err, ErrImageMissing, "a Docker that answers and fails is not passed over")
	_, err = Auto{Docker: none, Embedded: stub{err: ErrUnavailable}}.Start(t.Context(), Config{})
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, ErrNoDocker)
}

func TestExternalSaysWhatIsWrong(t *testing.T) {
	defer goleak.VerifyNone(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	// The port is open and nobody answers.
	_, err = External{Addresses: []string{address}}.Start(ctx, Config{})
	require.ErrorIs(t, err, ErrNotReady)
	require.ErrorContains(t, err, address)
	require.NoError(t, l.Close())
	ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = External{Addresses: []string{address}}.Start(ctx, Config{})
	require.ErrorIs(t, err, ErrNotReady)
	require.ErrorContains(t, err, "refused")
}

func TestFourLetterAnswers(t *testing.T) {
	defer goleak.VerifyNone(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			word := make([]byte, 4)
			_, err = c.Read(word)
			answer := "Zookeeper version: 3.9.5-2f40cca, built on x\nMode: follower\n"
			if string(word) == "srvr" {
				_, err = fmt.Fprint(c, answer)
			}
			err = errors.Join(err, c.Close())
		}
		served <- err
	}()
	lines, err := fourLetters(t.Context(), l.Addr().String(), "srvr")
	require.NoError(t, err)
	require.NoError(t, <-served)
	require.NoError(t, l.Close())
	require.Equal(t, "follower", value(lines, "Mode"))
	require.True(t, strings.HasPrefix(value(lines, "Zookeeper version"), "3.9.5-"))
	require.Empty(t, value(lines, "Nothing"))
	require.Empty(t, version(t.Context(), l.Addr().String()))
}

func TestEmbeddedServer(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, err := Embedded{}.Start(t.Context(), Config{})
	require.NoError(t, err)
	require.Contains(t, s.Info().String(), "embedded at 127.0.0.1:")
	address := s.Addresses()[0]
	members, ok := As[Members](s)
	require.True(t, ok)
	require.NoError(t, members.Kill(t.Context(), 0))
	require.Error(t, probe(t.Context(), address))
	require.NoError(t, members.Restart(t.Context(), 0))
	require.NoError(t, probe(t.Context(), address))
	require.NoError(t, members.Pause(t.Context(), 0))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, probe(short, address))
	require.NoError(t, members.Resume(t.Context(), 0))
	require.NoError(t, probe(t.Context(), address))
	require.ErrorIs(t, members.Kill(t.Context(), 1), ErrUnavailable)
	external, err := External{Addresses: s.Addresses()}.Start(t.Context(), Config{})
	require.NoError(t, err)
	require.NoError(t, external.Close(t.Context()))
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, s.Close(t.Context()))
	_, err = Embedded{}.Start(t.Context(), Config{Servers: 3})
	require.ErrorIs(t, err, ErrUnavailable)
}
