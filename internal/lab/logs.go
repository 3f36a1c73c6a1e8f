package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// nodeLogs writes each logger's lines to a file of its own, named like the
// logger: nodes/tablet-0.log. Files are made when the first line comes.
type nodeLogs struct {
	mu    sync.Mutex
	dir   string
	files map[string]*os.File
	err   error // the first failure; later lines of that file are lost
}

// newLogs returns a logger into dir, and its end. An empty dir is silent.
func newLogs(dir string) (*zap.Logger, func() error) {
	if dir == "" {
		return zap.NewNop(), func() error { return nil }
	}
	l := &nodeLogs{dir: dir, files: map[string]*os.File{}}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(&logCore{logs: l, enc: zapcore.NewJSONEncoder(enc), level: zapcore.InfoLevel}), l.close
}

func (l *nodeLogs) write(name string, line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.files[name]
	if f == nil {
		var err error
		if err = os.MkdirAll(l.dir, 0o755); err == nil {
			f, err = os.OpenFile(filepath.Join(l.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.files[name] = f
	}
	if _, err := f.Write(line); err != nil {
		l.fail(err)
	}
}

func (l *nodeLogs) fail(err error) {
	if l.err == nil {
		l.err = fmt.Errorf("write node log: %w", err)
	}
}

func (l *nodeLogs) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := []error{l.err}
	for _, f := range l.files {
		errs = append(errs, f.Close())
	}
	l.files = map[string]*os.File{}
	return errors.Join(errs...)
}

// logCore is a zap core that picks the file by the logger's name.
type logCore struct {
	logs  *nodeLogs
	enc   zapcore.Encoder
	level zapcore.Level
}

func (c *logCore) Enabled(level zapcore.Level) bool { return level >= c.level }

func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	enc := c.enc.Clone()
	for _, f := range fields {
		f.AddTo(enc)
	}
	return &logCore{c.logs, enc, c.level}
}

func (c *logCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	line, err := c.enc.EncodeEntry(e, fields)
	if err != nil {
		return fmt.Errorf("encode log line: %w", err)
	}
	c.logs.write(fileName(e.LoggerName), line.Bytes())
	line.Free()
	return nil
}

func (c *logCore) Sync() error { return nil }

// fileName makes a file's name of a logger's, whatever stands in it.
func fileName(logger string) string {
	if logger == "" {
		return "harness"
	}
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, strings.TrimLeft(logger, "."))
}
