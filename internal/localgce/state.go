package localgce

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// record is what a project remembers of a VM, also over its own death.
type record struct {
	Name  string `json:"name"`
	Zone  string `json:"zone"`
	Index int    `json:"index"` // names its port and its next hop; never given twice
	// ID is the instance id: a new one for each recreation.
	ID         uint64            `json:"id"`
	Address    netip.Addr        `json:"address"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Created    time.Time         `json:"created"`
	Disk       Disk              `json:"disk"`
}

// saved is state.json. It is written before anything that it tells of is acquired. What a project holds on the machine
// needs no entry: all names come from the state folder (names), so a sweep finds it without.
type saved struct {
	// PID and Started identify the project's process (the kernel's start time of the pid).
	PID     int      `json:"pid"`
	Started string   `json:"started"`
	Config  Config   `json:"config"`
	VMs     []record `json:"vms"`
}

// ErrUp is returned by Start for a state folder whose project is up.
var ErrUp = errors.New("the project is up already")

// lockState makes the state folder and takes its lock, which the kernel frees when the process dies.
func lockState(n names) (*os.File, error) {
	if err := os.MkdirAll(n.state, 0o755); err != nil {
		return nil, fmt.Errorf("make state folder: %w", err)
	}
	f, err := os.OpenFile(n.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state folder: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("state folder %s: %w", n.state, ErrUp)
	}
	return nil, fmt.Errorf("lock state folder %s: %w", n.state, err)
}

func readSaved(n names) (s saved, err error) {
	b, err := os.ReadFile(n.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", n.stateFile(), err)
	}
	return s, err
}

// write replaces state.json. It need not survive a power cut: nothing that it tells of does.
func (s saved) write(n names) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(n.stateFile()+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(n.stateFile()+".new", n.stateFile())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", n.stateFile(), err)
	}
	return nil
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
