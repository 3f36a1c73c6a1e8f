package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The files of a run's folder that this package writes; those of the harness
// are its own.
const (
	verdictFile  = "verdict.json"
	reportFile   = "report.html"
	junitFile    = "junit.xml"
	markdownFile = "summary.md"
	nodesDir     = "nodes"
	latestLink   = "latest"
)

// newFolder makes a run's folder, out/<test>/<time>-<seed>, which no earlier
// run has had, and points out/latest at it.
func newFolder(out, test string, seed uint64, now time.Time) (string, error) {
	parent := filepath.Join(out, test)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("make results folder: %w", err)
	}
	stem := fmt.Sprintf("%s-%d", now.UTC().Format("20060102T150405.000Z"), seed)
	for try := 1; ; try++ {
		dir := filepath.Join(parent, stem)
		if try > 1 {
			dir = fmt.Sprintf("%s-%d", dir, try)
		}
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("make run folder: %w", err)
		}
		return dir, link(out, dir)
	}
}

// link points out/latest at dir, in one step, so that no reader finds it gone.
// A file system without symbolic links goes without.
func link(out, dir string) error {
	target, err := filepath.Rel(out, dir)
	if err != nil {
		return fmt.Errorf("link latest run: %w", err)
	}
	temporary := filepath.Join(out, fmt.Sprintf(".%s-%d", latestLink, os.Getpid()))
	_ = os.Remove(temporary)
	if err := os.Symlink(target, temporary); err != nil {
		return nil //nolint:nilerr // a convenience that not every file system has
	}
	if err := os.Rename(temporary, filepath.Join(out, latestLink)); err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("link latest run: %w", err)
	}
	return nil
}

// writeFile writes a result by way of a second file and a rename, so that
// nobody finds half of it. Render may fail; nothing is left then.
func writeFile(path string, render func(f *os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	err = render(f)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
