// Package zookeeper provides the ZooKeeper servers that a run needs: in Docker
// containers of its own, anywhere else by address, or inside this process.
//
// What a provider starts it also removes: Close after success and failure, the
// end of the context while starting, and, for what a killed run left behind,
// the next start (owner.go).
package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.uber.org/zap"
)

// The errors that a user can do something about. Those returned wrap one of
// them and say what in one sentence.
var (
	ErrNoDocker     = errors.New("docker does not answer")
	ErrImageMissing = errors.New("zookeeper image is missing")
	ErrNotReady     = errors.New("zookeeper is not ready")
	ErrUnavailable  = errors.New("zookeeper server is not available")
)

// Provider starts ZooKeeper servers.
type Provider interface {
	// Start returns when a session can write to every server.
	Start(ctx context.Context, c Config) (Server, error)
}

// Server is ZooKeeper as one run uses it: one server or an ensemble.
type Server interface {
	// Addresses are host:port, one for each server.
	Addresses() []string
	Info() Info
	// Close removes what was started. It may be called more than once.
	Close(ctx context.Context) error
}

// Witness is a Server that can hand over its transaction log, which names the
// session, zxid and operation of every write: evidence that does not come from
// the nodes or their gates.
type Witness interface {
	// CopyLog writes each server's log into dir/<number of the server>/.
	CopyLog(ctx context.Context, dir string) error
}

// Members is a Server whose servers can be hurt one by one, numbered from 0.
type Members interface {
	// Kill ends a server as SIGKILL does; Restart starts it again and returns
	// when a session can write to it.
	Kill(ctx context.Context, server int) error
	Restart(ctx context.Context, server int) error
	// Pause stops a server from running; Resume lets it go on.
	Pause(ctx context.Context, server int) error
	Resume(ctx context.Context, server int) error
	// Leader is the number of the leading server; 0 where there is but one.
	Leader(ctx context.Context) (int, error)
}

// Info says what the servers are, for the first line of output and the report.
type Info struct {
	Kind      string   `json:"kind"` // docker, external, embedded
	Version   string   `json:"version,omitempty"`
	Addresses []string `json:"addresses"`
	Detail    string   `json:"detail,omitempty"` // image, or why this kind was chosen
}

// String is one line for people.
func (i Info) String() string {
	text := "ZooKeeper"
	if i.Version != "" {
		text += " " + i.Version
	}
	text += fmt.Sprintf(", %s at %s", i.Kind, strings.Join(i.Addresses, ","))
	if i.Detail != "" {
		text += " (" + i.Detail + ")"
	}
	return text
}

// Config is what a run asks of its servers. External ones are as they are.
type Config struct {
	// Servers is the size of the ensemble; 0 means one server.
	Servers int
	// Tick is ZooKeeper's tickTime: session time-outs are rounded up to it, and
	// the shortest is two of them. 0 means 500 ms.
	Tick time.Duration
	// MaxSession is the longest session time-out granted. 0 means ten minutes.
	MaxSession time.Duration
	// ForceSync has every transaction synced to disk before it is answered, as
	// in production. Without it a kill of the server loses nothing either, as
	// the operating system lives on.
	ForceSync bool
	// Keep leaves the containers running after Close, for a look at them. They
	// have no owner then: no later run removes them either.
	Keep bool
	Log  *zap.Logger
}

// DefaultImage is the image of Docker's servers.
const DefaultImage = "zookeeper:3.9.5"

func (c Config) withDefaults() Config {
	if c.Servers <= 0 {
		c.Servers = 1
	}
	if c.Tick <= 0 {
		c.Tick = 500 * time.Millisecond
	}
	if c.MaxSession <= 0 {
		c.MaxSession = 10 * time.Minute
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c
}

// Validate refuses what no provider can do.
func (c Config) Validate() error {
	if c.Servers < 0 || c.Servers > 7 {
		return fmt.Errorf("zookeeper: %d servers asked for, 1 to 7 are possible", c.Servers)
	}
	if c.Tick > 0 && c.Tick < 50*time.Millisecond {
		return fmt.Errorf("zookeeper: a tick of %v is too short, 50ms is the least", c.Tick)
	}
	return nil
}

// Parse reads the value of --zookeeper: auto, docker, embedded, or the
// addresses of servers, HOST:PORT[,HOST:PORT]. Image is for Docker's servers;
// empty means DefaultImage.
func Parse(spec, image string) (Provider, error) {
	docker := Docker{Image: image}
	switch spec {
	case "", "auto":
		return Auto{Docker: docker, Embedded: Embedded{}}, nil
	case "docker":
		return docker, nil
	case "embedded":
		return Embedded{}, nil
	}
	var e External
	for address := range strings.SplitSeq(spec, ",") {
		address = strings.TrimSpace(address)
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("zookeeper: %q is neither auto, docker, embedded nor HOST:PORT[,HOST:PORT]", spec)
		}
		e.Addresses = append(e.Addresses, address)
	}
	return e, nil
}
