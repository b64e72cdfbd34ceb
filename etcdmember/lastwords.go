package etcdmember

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/quorate/quorate/internal/durable"
)

// MemberEnd is etcd's last word when it ended itself, by a panic or a fatal error, and how often it came to the same.
// The child writes it on a tmpfs before it dies, so it is of this boot; the agent takes it away with the directory that
// it was about, and the child once it serves: then it has caught up with its leader on that directory, and what it said
// before has healed. A year later, at the next start of the agent, it would put a voter away that lacks nothing.
type MemberEnd struct {
	// Text is what etcd said; empty: it has not ended so.
	Text string `json:"text"`
	// Times is how often one soon after the other, with the same complaint where it is one of the directory.
	Times int       `json:"times"`
	Time  time.Time `json:"time"`
	// Log is which folder the log was in (logFolder): another directory that a person puts in its place has not said
	// this.
	Log string `json:"log"`
}

const (
	// soonAfter is the longest time between two ends of one story: the pauses before a start go up to a minute.
	soonAfter = 3 * time.Minute
	// unusableEnds is how often etcd must have said the same of a directory before it is believed: one end can be read
	// in a log, and proves enough by itself, but a directory is put away for it.
	unusableEnds = 3
)

// aboutTheDirectory are etcd's words that can only be about what is on the disk: raft compares the indexes that its log
// holds with one another, or with what the leader has this member's word for. Nothing that a port, a full or failing
// disk, a certificate or lack of memory may cause is among them: those pass, and the directory is good. A word is added
// here only with the place in etcd or raft that says it and the reason why nothing else can. Left out are what raft
// says of its own steps ("applied(5) is out of range", raft/log.go: it counts from the log's snapshot, and etcd, which
// starts it without Config.Applied, skips in its own code what the database holds already), and what puts the blame
// elsewhere: "entry 5 conflict with committed entry" says that the leader lacks what this log knows to be committed, so
// that the only copy may be here.
var aboutTheDirectory = []*regexp.Regexp{
	// raft/log.go commitTo: the leader has acknowledgements of this member for entries that its log does not have.
	regexp.MustCompile(`tocommit\(\d+\) is out of range \[lastIndex\(\d+\)\]`),
	// raft/raft.go loadState: the commit index that was saved lies beyond the log that was saved, at each start. etcd
	// writes entries before it; but what kind a record is stands outside its checksum, and an entry that is read as
	// such a state is of one index more than the log then has.
	regexp.MustCompile(`state\.commit \d+ is out of range \[\d+, \d+\]`),
}

// complaint is which of the words about a directory a text is; 0: none.
func complaint(text string) int {
	for i, word := range aboutTheDirectory {
		if word.MatchString(text) {
			return i + 1
		}
	}
	return 0
}

// unusable is what etcd says of the directory, if it has said so often enough; else empty.
func (e MemberEnd) unusable() string {
	if e.Times < unusableEnds || complaint(e.Text) == 0 {
		return ""
	}
	return fmt.Sprintf("it ended %d times, one soon after the other, with %q", e.Times, e.Text)
}

// after is the end that follows on this one.
func (e MemberEnd) after(text, log string, now time.Time) MemberEnd {
	next := MemberEnd{Text: text, Times: 1, Time: now, Log: log}
	if e.Text != "" && e.Log == log && complaint(e.Text) == complaint(text) && now.Sub(e.Time) <= soonAfter {
		next.Times = e.Times + 1
	}
	return next
}

// logFolder tells one directory's log from another's: the folder is made with the log and stays as long as it. Empty:
// there is none.
func logFolder(dir string) string {
	info, err := os.Stat(datadir.ToWALDir(dir))
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

// readEnd reads the last word of the member on a directory; what cannot be read was not said.
func readEnd(socket, dir string) MemberEnd {
	var e MemberEnd
	b, err := os.ReadFile(endPath(socket))
	if err != nil || json.Unmarshal(b, &e) != nil || e.Log != logFolder(dir) {
		return MemberEnd{}
	}
	return e
}

// writeEnd adds an end. What fails here only makes what is known poorer: the process is about to die.
func writeEnd(socket, dir, text string, now time.Time) {
	if b, err := json.Marshal(readEnd(socket, dir).after(text, logFolder(dir), now)); err == nil {
		_ = durable.WriteFile(endPath(socket), b, 0o600)
	}
}

// forgetEnd takes the last word away: the directory that it was about is gone, or the member serves on it.
func forgetEnd(socket string) error {
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
}

// With is the same log with further fields.
func (l lastWords) With(fields []zapcore.Field) zapcore.Core {
	return lastWords{l.Core.With(fields), l.socket, l.dir}
}

// Check lets the log decide for itself what it writes, and adds the last word.
func (l lastWords) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	c = l.Core.Check(e, c)
	if e.Level >= zapcore.PanicLevel {
		c = c.AddCore(e, l)
	}
	return c
}

// Write is asked only for the last word.
func (l lastWords) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text := e.Message
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			text += ": " + err.Error()
		}
	}
	writeEnd(l.socket, l.dir, text, e.Time)
	return nil
}

// logWithLastWords gives etcd the log that it would make for itself (embed/config_logging.go: JSON on standard error),
// and keeps its last words.
func logWithLastWords(e *embed.Config, socket string) error {
	dir := e.Dir
	c := logutil.DefaultZapLoggerConfig
	c.OutputPaths, c.ErrorOutputPaths = e.LogOutputs, e.LogOutputs
	c.Level = zap.NewAtomicLevelAt(logutil.ConvertToZapLevel(e.LogLevel))
	log, err := c.Build(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return lastWords{core, socket, dir} }))
	if err != nil {
		return fmt.Errorf("configure etcd: its log: %w", err)
	}
	e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return nil
}
