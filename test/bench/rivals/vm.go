package rivals

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// commandLimit bounds what is run in a VM: all of it takes a second, on a busy machine more.
const commandLimit = time.Minute

// vm is one machine with a kubelet, a runtime, and one rival.
type vm struct {
	rival
	name    string // in its project
	project *localgce.Project
	pid     int    // of its pid 1
	monit   string // the program, on the host
	*observer
	stop func() // ends the observer
}

func (v *vm) logFolder() string {
	for _, s := range v.project.Status().VMs {
		if s.Name == v.name {
			return s.LogFolder
		}
	}
	return ""
}

// path is a path in the VM, as the host reaches it.
func (v *vm) path(guest string) string { return fmt.Sprintf("/proc/%d/root%s", v.pid, guest) }

// write writes a file of the VM.
func (v *vm) write(guest, text string, mode os.FileMode) error {
	path := v.path(guest)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), mode)
}

// copy copies a program of the host's.
func (v *vm) copy(host, guest string) error {
	text, err := os.ReadFile(host)
	if err != nil {
		return err
	}
	return v.write(guest, string(text), 0o755)
}

// dropIn changes a unit for this boot. systemd has to be told.
func (v *vm) dropIn(unit, text string) error {
	return v.write("/run/systemd/system/"+unit+".service.d/rival.conf", text, 0o644)
}

// sh runs a script in the VM and returns what it prints.
func (v *vm) sh(ctx context.Context, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	cmd, err := v.project.Command(ctx, v.name, "sh", "-c", script)
	if err != nil {
		return "", err
	}
	return output(cmd)
}

// run is sh of which nobody wants to know more.
func (v *vm) run(ctx context.Context, script string) error {
	_, err := v.sh(ctx, script)
	return err
}

// output is what a command prints; its error has what it complained of.
func output(cmd *exec.Cmd) (string, error) {
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, complaint.String())
	}
	return string(out), err
}

// containers are the processes of the pod.
func (v *vm) containers(ctx context.Context) ([]string, error) {
	out, err := v.sh(ctx, "pgrep -x pause || true")
	return strings.Fields(out), err
}
