package zookeeper

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

var (
	_ Members = (*dockerServer)(nil)
	_ Witness = (*dockerServer)(nil)
)

func (s *dockerServer) member(i int) (member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || i < 0 || i >= len(s.members) {
		return member{}, fmt.Errorf("%w: number %d", ErrUnavailable, i)
	}
	return s.members[i], nil
}

// Kill ends a server as SIGKILL does. Its data stay.
func (s *dockerServer) Kill(ctx context.Context, i int) error {
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if _, err := s.docker.ContainerKill(ctx, m.id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		return fmt.Errorf("kill zookeeper server %d: %w", i, err)
	}
	return nil
}

// Restart starts a server that was killed, on the same port.
func (s *dockerServer) Restart(ctx context.Context, i int) error {
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if _, err := s.docker.ContainerStart(ctx, m.id, client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("restart zookeeper server %d: %w", i, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := awaitWritable(ctx, m.address(s.host)); err != nil {
		return fmt.Errorf("restart zookeeper server %d: %w%s", i, err, s.lastWords(ctx, i))
	}
	return nil
}

// Pause stops a server from running.
func (s *dockerServer) Pause(ctx context.Context, i int) error {
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if _, err := s.docker.ContainerPause(ctx, m.id, client.ContainerPauseOptions{}); err != nil {
		return fmt.Errorf("pause zookeeper server %d: %w", i, err)
	}
	return nil
}

// Resume lets a paused server go on.
func (s *dockerServer) Resume(ctx context.Context, i int) error {
	m, err := s.member(i)
	if err != nil {
		return err
	}
	if _, err := s.docker.ContainerUnpause(ctx, m.id, client.ContainerUnpauseOptions{}); err != nil {
		return fmt.Errorf("resume zookeeper server %d: %w", i, err)
	}
	return nil
}

// Leader asks every server for its mode.
func (s *dockerServer) Leader(ctx context.Context) (int, error) {
	var errs []error
	for i, address := range s.Addresses() {
		lines, err := fourLetters(ctx, address, "srvr")
		errs = append(errs, err)
		if mode := value(lines, "Mode"); mode == "leader" || mode == "standalone" {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: no server says that it leads: %w", ErrUnavailable, errors.Join(errs...))
}

// lastWords are the end of a server's output, for an error's text.
func (s *dockerServer) lastWords(ctx context.Context, i int) string {
	m, err := s.member(i)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	logs, err := s.docker.ContainerLogs(ctx, m.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "5"})
	if err != nil {
		return ""
	}
	var text strings.Builder
	_, err = stdcopy.StdCopy(&text, &text, logs)
	if err = errors.Join(err, logs.Close()); err != nil || text.Len() == 0 {
		return ""
	}
	return "\nits last words:\n" + text.String()
}

// CopyLog copies /data/version-2, the transaction logs and snapshots, of every
// server, running or killed, into dir/<number>.
func (s *dockerServer) CopyLog(ctx context.Context, dir string) error {
	for i := range s.Addresses() {
		m, err := s.member(i)
		if err != nil {
			return err
		}
		r, err := s.docker.CopyFromContainer(ctx, m.id, client.CopyFromContainerOptions{SourcePath: "/data/version-2"})
		if err != nil {
			return fmt.Errorf("copy transaction log of zookeeper server %d: %w", i, err)
		}
		err = unpack(r.Content, filepath.Join(dir, strconv.Itoa(i)))
		if err = errors.Join(err, r.Content.Close()); err != nil {
			return fmt.Errorf("copy transaction log of zookeeper server %d: %w", i, err)
		}
	}
	return nil
}

// unpack writes the regular files of an archive, without its folders, into dir.
func unpack(archive io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := tar.NewReader(archive)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		f, err := os.Create(filepath.Join(dir, path.Base(header.Name)))
		if err != nil {
			return err
		}
		_, err = io.Copy(f, files)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
