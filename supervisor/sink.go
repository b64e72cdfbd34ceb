package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/asynclog"
)

// journalSocket takes streams of lines; see sd_journal_stream_fd(3).
const journalSocket = "/run/systemd/journal/stdout"

// HasJournal reports whether this machine has a journal. systemd keeps its socket also while journald starts anew.
func HasJournal() bool {
	info, err := os.Stat(journalSocket)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// openSink chooses where a process's output goes.
func openSink(logDir, name string) sink {
	if logDir != "" {
		return &logFile{path: filepath.Join(logDir, name+".log"), limit: logLimit}
	}
	return &journal{socket: journalSocket, identifier: name}
}

// logLimit is the size at which a log file is put aside; the one put aside before is removed. A chatty apiserver fills
// it in an hour, and five processes take 320 MiB at most.
const logLimit = 32 << 20

// Root alone reads the logs: what a component prints may say who asked it for what.
const (
	logFolderMode fs.FileMode = 0o700
	logFileMode   fs.FileMode = 0o600
)

// logFile is a file and one predecessor. It is opened at the first write and again after an error, so that a disk that
// is repaired or mounted late is used, and where the path names another file: somebody has moved or removed the log.
type logFile struct {
	path  string
	limit int64
	file  *os.File
}

func (l *logFile) Write(data []byte) (int, error) {
	if err := l.open(); err != nil {
		return 0, err
	}
	n, err := l.file.Write(data)
	if err != nil {
		return n, errors.Join(err, l.Close())
	}
	return n, l.rotate()
}

func (l *logFile) open() error {
	if l.file != nil && l.named() {
		return nil
	}
	_ = l.Close() // nothing is lost with it: what was written is the kernel's
	if err := os.MkdirAll(filepath.Dir(l.path), logFolderMode); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, logFileMode)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm() != logFileMode {
		err = file.Chmod(logFileMode) // an older version made it readable for a group
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file = file
	return nil
}

// named reports whether the open file is what the path names. Else who removes a log would get neither room nor a log.
func (l *logFile) named() bool {
	named, err := os.Stat(l.path)
	if err != nil {
		return false
	}
	open, err := l.file.Stat()
	return err == nil && os.SameFile(open, named)
}

// rotate puts a full file aside; the next write opens a new one. It asks for the size: somebody may have cut the file.
func (l *logFile) rotate() error {
	if info, err := l.file.Stat(); err != nil || info.Size() < l.limit {
		return err
	}
	return errors.Join(l.Close(), os.Rename(l.path, l.path+".1"))
}

// endRun adds nothing: the file holds what the runs wrote.
func (l *logFile) endRun() {}

// Close may be called at any time; a later write opens the file again.
func (l *logFile) Close() error {
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}

// journalPatience bounds a write to a journal that has stopped reading.
const journalPatience = time.Second

// journal is a stream to journald under an identifier of its own, so that `journalctl -t NAME` shows one process. Each
// line has a priority.
type journal struct {
	socket, identifier string
	levels             asynclog.Leveler
	conn               net.Conn
}

// Write connects if need be: a journal that was started again has closed the stream. What cannot be written is lost
// whole, with the line that it completes.
func (j *journal) Write(data []byte) (int, error) {
	if err := j.put(j.levels.Add(data)); err != nil {
		return 0, err
	}
	return len(data), nil
}

// endRun writes a last line that had no end.
func (j *journal) endRun() {
	_ = j.put(j.levels.Last()) // nothing was promised about the last bytes
}

func (j *journal) put(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	if j.conn == nil {
		if err := j.connect(); err != nil {
			return err
		}
	}
	if err := j.send(lines); err != nil {
		return errors.Join(err, j.disconnect())
	}
	return nil
}

func (j *journal) send(lines []byte) error {
	if err := j.conn.SetWriteDeadline(time.Now().Add(journalPatience)); err != nil {
		return err
	}
	_, err := j.conn.Write(lines)
	return err
}

// connect sends the header: identifier, unit (none), priority 6 (info) for a line without one, that lines carry a
// priority <N>, and whether to forward to syslog, kmsg and console.
func (j *journal) connect() error {
	conn, err := net.DialTimeout("unix", j.socket, journalPatience)
	if err != nil {
		return err
	}
	j.conn = conn
	if err := j.send(fmt.Appendf(nil, "%s\n\n6\n1\n0\n0\n0\n", j.identifier)); err != nil {
		return errors.Join(err, j.disconnect())
	}
	return nil
}

// Close ends the stream. All that the runs wrote is in it.
func (j *journal) Close() error { return j.disconnect() }

func (j *journal) disconnect() error {
	if j.conn == nil {
		return nil
	}
	conn := j.conn
	j.conn = nil
	return conn.Close()
}
