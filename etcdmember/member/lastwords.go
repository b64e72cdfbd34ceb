package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/durable"
)

// logFolder tells one directory's log from another's: the folder is made with the log and stays as long as it. Empty:
// there is none.
func logFolder(dir string) string {
	info, err := os.Stat(datadir.LogDir(dir))
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// endPath is where the child of this status socket leaves its last word.
func endPath(socket string) string { return filepath.Join(filepath.Dir(socket), "etcd-end.json") }

// ReadEnd reads the last word of the member on a directory; what cannot be read was not said.
func ReadEnd(socket, dir string) table.MemberEnd {
	var e table.MemberEnd
	b, err := os.ReadFile(endPath(socket))
	if err != nil || json.Unmarshal(b, &e) != nil || e.Log != logFolder(dir) {
		return table.MemberEnd{}
	}
	return e
}

// WriteEnd adds an end. What fails here only makes what is known poorer: the process is about to die.
func WriteEnd(socket, dir, text string, now time.Time) {
	if b, err := json.Marshal(ReadEnd(socket, dir).After(text, logFolder(dir), now)); err == nil {
		_ = durable.WriteFile(endPath(socket), b, 0o600)
	}
}

// ForgetEnd takes the last word away: the directory that it was about is gone, or the member serves on it.
func ForgetEnd(socket string) error {
	if err := os.Remove(endPath(socket)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget how etcd ended: %w", err)
	}
	return nil
}

// lastWords is a log that also keeps what ends the process. The end of the process's output, which the supervisor has,
// does not always hold it: the unit's GOTRACEBACK=all prints every stack after a panic's text, 27 KB of an idle member
// and more than the 64 KiB that are kept where clients watch. Go's own line also lacks the error that etcd logs with
// it, such as that the disk is full. The file outlives the agent, which ends after as many starts in vain as it takes
// to believe a directory unusable.
type lastWords struct {
	zapcore.Core
	socket, dir string
	said        *atomic.Value // the newest text, without what was added to it
}

// With is the same log with further fields.
func (l lastWords) With(fields []zapcore.Field) zapcore.Core {
	return lastWords{l.Core.With(fields), l.socket, l.dir, l.said}
}

// Check lets the log decide for itself what it writes, and adds the last word.
func (l lastWords) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	c = l.Core.Check(e, c)
	if e.Level >= zapcore.PanicLevel {
		c = c.AddCore(e, l)
	}
	return c
}

// Write is asked only for the last word. etcd's scheduler passes a panic on in words of its own ("execute job
// failed"), with what was said first as a field.
func (l lastWords) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text := e.Message
	for _, f := range fields {
		if f.Key == "panic" && f.Type == zapcore.StringType {
			if f.String == l.said.Load() {
				return nil
			}
			text += ": " + f.String
		}
		if err, ok := f.Interface.(error); ok {
			text += ": " + err.Error()
		}
	}
	l.said.Store(e.Message)
	WriteEnd(l.socket, l.dir, text, e.Time)
	return nil
}

// logWithLastWords gives etcd the log that it would make for itself (embed/config_logging.go: JSON on standard error),
// and keeps its last words.
func logWithLastWords(e *embed.Config, socket string) error {
	dir := e.Dir
	c := logutil.DefaultZapLoggerConfig
	c.OutputPaths, c.ErrorOutputPaths = e.LogOutputs, e.LogOutputs
	said := &atomic.Value{}
	c.Level = zap.NewAtomicLevelAt(logutil.ConvertToZapLevel(e.LogLevel))
	heard := func(core zapcore.Core) zapcore.Core { return lastWords{core, socket, dir, said} }
	log, err := c.Build(zap.WrapCore(heard))
	if err != nil {
		return fmt.Errorf("configure etcd: its log: %w", err)
	}
	e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return nil
}
