package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	"go.uber.org/zap"
)

// Docker starts servers in containers, through testcontainers. The containers
// carry the name of the process that owns them (owner.go).
type Docker struct {
	Image string // empty means DefaultImage
}

const (
	// startTimeout is how long all servers may take until a session can write.
	startTimeout = 90 * time.Second
	// removeTimeout bounds the clean-up, which does not depend on the caller's
	// context: that one has often ended.
	removeTimeout = 30 * time.Second
	// portTries is how often a port that was free and is taken is replaced.
	portTries = 5
	// clientPort is the server's own, inside the container.
	clientPort = "2181/tcp"
)

// Start starts the containers and waits until a session can write. Whatever
// fails on the way, nothing stays behind.
func (d Docker) Start(ctx context.Context, c Config) (Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	docker, host, err := connect(ctx, c.Log)
	if err != nil {
		return nil, err
	}
	s := &dockerServer{docker: docker, host: host, image: d.Image, config: c}
	if !c.Keep {
		s.owner = self()
	}
	if s.image == "" {
		s.image = DefaultImage
	}
	if err := removeStale(ctx, docker, c.Log); err != nil {
		c.Log.Warn("stale containers stay", zap.Error(err))
	}
	if err := s.start(ctx); err != nil {
		s.config.Keep = false
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// connect asks Docker for a sign of life. Host is where its ports appear.
func connect(ctx context.Context, log *zap.Logger) (client.APIClient, string, error) {
	// The library speaks to standard error of its own accord.
	tclog.SetDefault(quiet{log.Named("docker").Sugar()})
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, "", noDocker(err)
	}
	docker := provider.Client()
	if _, err := docker.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return nil, "", errors.Join(noDocker(err), provider.Close())
	}
	host, err := provider.DaemonHost(ctx)
	if err != nil {
		return nil, "", errors.Join(noDocker(err), provider.Close())
	}
	return docker, host, nil
}

func noDocker(err error) error {
	return fmt.Errorf("%w: start it, or use --zookeeper embedded or --zookeeper HOST:PORT (%w)", ErrNoDocker, err)
}

type quiet struct{ log *zap.SugaredLogger }

// Printf logs a message of the library's.
func (q quiet) Printf(format string, args ...any) { q.log.Debugf(strings.TrimSpace(format), args...) }

// isGone tells the errors that say that something is removed already, or is
// being removed.
func isGone(err error) bool { return errdefs.IsNotFound(err) || errdefs.IsConflict(err) }

// dockerServer is one server or an ensemble in containers.
type dockerServer struct {
	docker client.APIClient
	host   string
	image  string
	config Config
	owner  owner

	mu      sync.Mutex
	network string // an ensemble's
	members []member
	version string
	closed  bool
}

// member is one server. Its port stays the same over restarts.
type member struct {
	id   string // of the container
	port int
}

func (m member) address(host string) string { return net.JoinHostPort(host, strconv.Itoa(m.port)) }

func (s *dockerServer) start(ctx context.Context) error {
	if s.config.Servers > 1 {
		if err := s.connectMembers(ctx); err != nil {
			return err
		}
	}
	for i := range s.config.Servers {
		m, err := s.run(ctx, i)
		if m.id != "" {
			s.mu.Lock()
			s.members = append(s.members, m)
			s.mu.Unlock()
		}
		if err != nil {
			return err
		}
	}
	wait, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.findHost(wait); err != nil {
		return fmt.Errorf("start zookeeper server of %s: %w%s", s.image, err, s.lastWords(ctx, 0))
	}
	for i, address := range s.Addresses() {
		if err := awaitWritable(wait, address); err != nil {
			return fmt.Errorf("start zookeeper server %d of %s: %w%s", i, s.image, err, s.lastWords(ctx, i))
		}
	}
	s.version = version(ctx, s.Addresses()[0])
	return nil
}

// findHost settles at which host the ports appear. Testcontainers' guess is
// wrong in some containers that reach the daemon through a socket; this machine
// itself is tried beside it then.
func (s *dockerServer) findHost(ctx context.Context) error {
	if isLocal(s.host) || os.Getenv("TESTCONTAINERS_HOST_OVERRIDE") != "" || !strings.HasPrefix(s.docker.DaemonHost(), "unix:") {
		return nil
	}
	m, err := s.member(0)
	if err != nil {
		return err
	}
	host, err := firstWritable(ctx, m.port, s.host, "127.0.0.1")
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
	return nil
}

// connectMembers makes the network in which the members of an ensemble meet.
func (s *dockerServer) connectMembers(ctx context.Context) error {
	name := fmt.Sprintf("fencepost-zookeeper-%d-%d", os.Getpid(), time.Now().UnixNano())
	created, err := s.docker.NetworkCreate(ctx, name, client.NetworkCreateOptions{Driver: "bridge", Labels: s.owner.labels()})
	if err != nil {
		return fmt.Errorf("create network for the ensemble: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.network = created.ID
	return nil
}

// run starts one container. A port that somebody else took in the meantime is
// replaced by another.
func (s *dockerServer) run(ctx context.Context, i int) (member, error) {
	var last error
	for range portTries {
		port, err := freePort(ctx)
		if err != nil {
			return member{}, err
		}
		c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
			ContainerRequest: s.request(i, port), Started: true,
		})
		m := member{port: port}
		if c != nil {
			m.id = c.GetContainerID()
		}
		if err == nil {
			return m, nil
		}
		last = err
		if m.id != "" {
			if err := s.remove(ctx, m.id); err != nil {
				return m, errors.Join(s.explain(ctx, last), err)
			}
		}
		if !isPortTaken(err) {
			return member{}, s.explain(ctx, err)
		}
	}
	return member{}, fmt.Errorf("start zookeeper container: no free port in %d tries, name a server by --zookeeper HOST:PORT: %w",
		portTries, last)
}

func isPortTaken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "port is already allocated") || strings.Contains(text, "address already in use")
}

// freePort asks the system for one.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err = errors.Join(err, l.Close()); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return strconv.Atoi(text)
}

// explain says what to do about an image that is not there.
func (s *dockerServer) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		if _, inspectErr := s.docker.ImageInspect(ctx, s.image); errdefs.IsNotFound(inspectErr) {
			return fmt.Errorf("%w: %s is not on this machine and cannot be pulled; build it with tools/local-images.sh, "+
				"or use --zookeeper embedded (%w)", ErrImageMissing, s.image, err)
		}
	}
	if strings.Contains(err.Error(), "reaper") {
		return fmt.Errorf("start zookeeper container: the image of testcontainers' reaper cannot be had; "+
			"set TESTCONTAINERS_RYUK_DISABLED=true, our containers are removed without it: %w", err)
	}
	return fmt.Errorf("start zookeeper container of %s: %w", s.image, err)
}

// request describes the container of server i.
func (s *dockerServer) request(i, port int) testcontainers.ContainerRequest {
	labels := s.owner.labels()
	r := testcontainers.ContainerRequest{
		Image:        s.image,
		ExposedPorts: []string{clientPort},
		Labels:       labels,
		Env: map[string]string{
			"JVMFLAGS":  "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
			"ZOO_MY_ID": strconv.Itoa(i + 1),
		},
		Files: []testcontainers.ContainerFile{
			{Reader: strings.NewReader(zooCfg(s.config)), ContainerFilePath: "/conf/zoo.cfg", FileMode: 0o644},
		},
		HostConfigModifier: func(h *container.HostConfig) {
			h.PortBindings = network.PortMap{
				network.MustParsePort(clientPort): {{HostIP: bindAddress(s.host), HostPort: strconv.Itoa(port)}},
			}
		},
	}
	if s.config.Servers > 1 {
		r.Networks = []string{s.network}
		r.NetworkAliases = map[string][]string{s.network: {memberName(i)}}
		r.Files = append(r.Files, testcontainers.ContainerFile{
			Reader: strings.NewReader(strconv.Itoa(i+1) + "\n"), ContainerFilePath: "/data/myid", FileMode: 0o644,
		})
	}
	return r
}

// bindAddress keeps the port to this machine, where the daemon is on it.
func bindAddress(host string) netip.Addr {
	if isLocal(host) {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv4Unspecified()
}

func isLocal(host string) bool { return host == "localhost" || host == "127.0.0.1" }

func memberName(i int) string { return "zookeeper-" + strconv.Itoa(i) }

// zooCfg is the server's configuration file.
func zooCfg(c Config) string {
	set := map[string]string{
		"tickTime":               strconv.FormatInt(c.Tick.Milliseconds(), 10),
		"initLimit":              "20",
		"syncLimit":              "10",
		"dataDir":                "/data",
		"clientPort":             "2181",
		"minSessionTimeout":      strconv.FormatInt(2*c.Tick.Milliseconds(), 10),
		"maxSessionTimeout":      strconv.FormatInt(c.MaxSession.Milliseconds(), 10),
		"maxClientCnxns":         "0",
		"admin.enableServer":     "false",
		"4lw.commands.whitelist": "*",
		"preAllocSize":           "1024", // kB; the log is copied out as a witness
		"forceSync":              "no",
	}
	if c.ForceSync {
		set["forceSync"] = "yes"
	}
	for i := range c.Servers {
		if c.Servers > 1 {
			set["server."+strconv.Itoa(i+1)] = memberName(i) + ":2888:3888"
		}
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(set)) {
		fmt.Fprintf(&b, "%s=%s\n", key, set[key])
	}
	return b.String()
}

// Addresses are those of the servers, in their order.
func (s *dockerServer) Addresses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.members))
	for _, m := range s.members {
		all = append(all, m.address(s.host))
	}
	return all
}

// Info describes the servers.
func (s *dockerServer) Info() Info {
	return Info{Kind: "docker", Version: s.version, Addresses: s.Addresses(), Detail: s.image}
}

// Close removes the containers and the network, even if ctx has ended.
func (s *dockerServer) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.config.Keep {
		s.closed = true
		return s.docker.Close()
	}
	var errs []error
	for _, m := range s.members {
		errs = append(errs, s.remove(ctx, m.id))
	}
	if s.network != "" {
		if _, err := s.docker.NetworkRemove(ctx, s.network, client.NetworkRemoveOptions{}); err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("remove network %s: %w", s.network, err))
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		s.closed = true
		err = s.docker.Close()
	}
	return err
}

func (s *dockerServer) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	_, err := s.docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !isGone(err) {
		return fmt.Errorf("remove container %s, do it by hand with docker rm -f: %w", id, err)
	}
	return nil
}
