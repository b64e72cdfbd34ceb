package localgce

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrUp is returned by Start for a state folder whose project is up.
var ErrUp = errors.New("the project is up already")

// lock is held by the one process that may touch the project of a state folder. The kernel frees it when that process
// dies. The file is not in the state folder, so that the owner is found even where someone has removed that.
type lock struct{ file *os.File }

// takeLock takes the lock or returns ErrUp.
func takeLock(n names) (*lock, error) {
	for {
		f, err := os.OpenFile(n.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock the project of %s: %w", n.state, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("state folder %s: %w", n.state, ErrUp)
			}
			return nil, fmt.Errorf("lock the project of %s: %w", n.state, err)
		}
		if sameFile(f) {
			return &lock{f}, writeOwner(f, n.state)
		}
		f.Close() // its owner removed it between our open and our lock
	}
}

// sameFile says whether the file still has its name.
func sameFile(f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(mine, named)
}

// release removes the file and frees the lock.
func (l *lock) release() {
	_ = os.Remove(l.file.Name())
	l.file.Close()
}

// writeOwner tells who holds the lock: pid and the kernel's start time of it, which name one process for good, and the
// state folder, by which another project can clean up when that process has died.
func writeOwner(f *os.File, state string) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	if _, err := f.WriteAt(fmt.Appendf(nil, "%d %s\n%s\n", os.Getpid(), startTime(os.Getpid()), state), 0); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	return nil
}

// owner is the pid of the process that holds the lock, if it can be told for sure.
func (n names) owner() (pid int, ok bool) {
	b, err := os.ReadFile(n.lockFile())
	if err != nil {
		return 0, false
	}
	var started string
	if _, err := fmt.Sscan(string(b), &pid, &started); err != nil || pid <= 1 {
		return 0, false
	}
	return pid, startTime(pid) == started
}

// namedByLink is the state folder of the project whose host link has this name, by what its lock file says.
func namedByLink(link string) (state string, ok bool) {
	hash, ours := strings.CutPrefix(link, names{}.hostLink())
	if !ours {
		return "", false
	}
	b, err := os.ReadFile(names{hash: hash}.lockFile())
	if err != nil {
		return "", false
	}
	_, state, _ = strings.Cut(strings.TrimSuffix(string(b), "\n"), "\n")
	return state, state != "" && namesFor(state).hostLink() == link
}

// startTime is the kernel's start time of a process; with the pid it names one process for good.
func startTime(pid int) string {
	b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	if f := strings.Fields(rest); len(f) > 19 {
		return f[19]
	}
	return ""
}
