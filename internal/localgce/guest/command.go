package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command is this program as stage one of a boot.
func Command(cgroup, log *os.File) *exec.Cmd {
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{bootStage}, Env: []string{"PATH=" + SearchPath}, Dir: "/", Stdout: log,
		Stderr: log,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
			Setsid:     true, UseCgroupFD: true, CgroupFD: int(cgroup.Fd()),
		},
	}
}

// File hands the specification over in memory, so that there is nothing to clean up.
func (s Spec) File() (*os.File, error) {
	fd, err := unix.MemfdCreate("localgce-spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("write boot specification: %w", err)
	}
	f := os.NewFile(uintptr(fd), "localgce-spec")
	if err := json.NewEncoder(f).Encode(s); err != nil {
		f.Close()
		return nil, fmt.Errorf("write boot specification: %w", err)
	}
	return f, nil
}
