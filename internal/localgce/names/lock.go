package names

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

// Lock is held by the one process that may touch the project of a state folder. The kernel frees it when that process
// dies. The file is not in the state folder, so that the owner is found even where someone has removed that.
type Lock struct{ file *os.File }

// Take takes the lock or returns ErrUp.
func (n Names) Take() (*Lock, error) {
	for {
		f, err := os.OpenFile(n.LockFile(), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock the project of %s: %w", n.State, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, fmt.Errorf("state folder %s: %w", n.State, ErrUp)
			}
			return nil, fmt.Errorf("lock the project of %s: %w", n.State, err)
		}
		if sameFile(f) {
			return &Lock{f}, writeOwner(f, n.State)
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

// Release removes the file and frees the lock.
func (l *Lock) Release() {
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

// Owner is the pid of the process that holds the lock, if it can be told for sure.
func (n Names) Owner() (pid int, ok bool) {
	b, err := os.ReadFile(n.LockFile())
	if err != nil {
		return 0, false
	}
	var started string
	if _, err := fmt.Sscan(string(b), &pid, &started); err != nil || pid <= 1 {
		return 0, false
	}
	return pid, startTime(pid) == started
}

// NamedByLink is the state folder of the project whose host link has this name, by what its lock file says.
func NamedByLink(link string) (state string, ok bool) {
	hash, ours := strings.CutPrefix(link, Names{}.HostLink())
	if !ours {
		return "", false
	}
	b, err := os.ReadFile(Names{hash: hash}.LockFile())
	if err != nil {
		return "", false
	}
	_, state, _ = strings.Cut(strings.TrimSuffix(string(b), "\n"), "\n")
	return state, state != "" && For(state).HostLink() == link
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
