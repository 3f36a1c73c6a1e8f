package zookeeper

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// probeTimeout bounds one try, probePause is the rest between two.
const (
	probeTimeout = 2 * time.Second
	probePause   = 50 * time.Millisecond
)

// awaitWritable returns when a session can write to a server. An open port
// proves nothing: Docker's proxy listens before the server does, and a member
// of an ensemble before there is a leader.
func awaitWritable(ctx context.Context, address string) error {
	last := errors.New("no answer")
	for {
		err := probe(ctx, address)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		timer := time.NewTimer(probePause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w: %w", ErrNotReady, ctx.Err(), last)
		}
	}
}

// firstWritable is the host at which a session can write first.
func firstWritable(ctx context.Context, port int, hosts ...string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		host string
		err  error
	}
	answers := make(chan answer, len(hosts))
	for _, host := range hosts {
		go func() { answers <- answer{host, awaitWritable(ctx, net.JoinHostPort(host, strconv.Itoa(port)))} }()
	}
	var errs []error
	found := ""
	for range hosts {
		a := <-answers
		if a.err != nil {
			errs = append(errs, a.err)
		} else if found == "" {
			found = a.host
			cancel()
		}
	}
	if found == "" {
		return "", errors.Join(errs...)
	}
	return found, nil
}

// The requests of a probe.
const (
	opCreate       = 1
	opCloseSession = -11
	flagEphemeral  = 1
	errNodeExists  = -110
)

// probe opens a session, creates an ephemeral node in it, and closes it.
func probe(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is left to lose
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := exchange(conn, frame(int32(0), int64(0), int32(4000), int64(0), make([]byte, 16))); err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	path := fmt.Sprintf("/fencepost-probe-%d-%d", os.Getpid(), time.Now().UnixNano())
	create := frame(int32(1), int32(opCreate), []byte(path), []byte{},
		int32(1), int32(31), []byte("world"), []byte("anyone"), int32(flagEphemeral))
	code, err := exchange(conn, create)
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	if code != 0 && code != errNodeExists {
		return fmt.Errorf("create node: zookeeper error %d", code)
	}
	if _, err := exchange(conn, frame(int32(2), int32(opCloseSession))); err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	return nil
}

// exchange sends a frame and reads the answer's error code (of a reply to a
// connect: some other number).
func exchange(conn net.Conn, request []byte) (int32, error) {
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(head)
	if n < 16 || n > 1<<20 {
		return 0, fmt.Errorf("answer of %d bytes is not zookeeper's", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(conn, body); err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(body[12:])), nil
}

// frame is a request: values as ZooKeeper writes them, behind their length.
func frame(values ...any) []byte {
	b := make([]byte, 4)
	for _, v := range values {
		switch v := v.(type) {
		case int32:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case []byte:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// fourLetters sends one of ZooKeeper's four-letter words and returns the lines
// of the answer.
func fourLetters(ctx context.Context, address, word string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // read only
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return nil, err
	}
	var lines []string
	scanner := bufio.NewScanner(conn)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines, scanner.Err()
}

// value finds "key: value" among the lines of srvr.
func value(lines []string, key string) string {
	for _, line := range lines {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// version is the server's own word for it, or empty where it may not be asked.
func version(ctx context.Context, address string) string {
	lines, err := fourLetters(ctx, address, "srvr")
	if err != nil {
		return ""
	}
	v, _, _ := strings.Cut(value(lines, "Zookeeper version"), "-")
	return v
}
