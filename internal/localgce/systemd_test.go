package localgce_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
)

// useSystemd makes a project's VMs boot the baked image, with the tiny agent in quorate's place and no kubelet.
func useSystemd(conf *localgce.Config) error {
	conf.Masked = localgce.KubeletUnits()
	return conf.BootImage(filepath.Join(os.Getenv("QUORATE_IMAGE"), "root.tar"))
}

// systemdConfig is config with systemd VMs.
func systemdConfig(t *testing.T, n int, vms ...string) localgce.Config {
	t.Helper()
	needRoot(t)
	if os.Getenv("QUORATE_IMAGE") == "" {
		t.Skip("needs a baked image: make cases-systemd, or QUORATE_IMAGE=FOLDER")
	}
	conf := config(t.TempDir(), n, vms...)
	if err := useSystemd(&conf); err != nil {
		t.Fatal(err)
	}
	return conf
}

// What a program finds in a VM that boots the image.
func TestASystemdVMBootsTheImage(t *testing.T) {
	w := start(t, systemdConfig(t, 27, "a", "b"))
	w.awaitReady("a", "b")
	if kind := w.Status().Kind; kind != localgce.SystemdVMs {
		t.Errorf("the project says that its VMs are of kind %q", kind)
	}
	const meta = "/usr/local/bin/tiny tiny get http://metadata.google.internal/computeMetadata/v1/"
	for script, want := range map[string]string{
		"cat /proc/1/comm":                   "systemd",
		"hostname":                           "a",
		"systemctl is-system-running --wait": "running",
		"systemd-detect-virt":                "container-other",
		meta + "instance/id":                 w.vm("a").InstanceID,
		// made by the image's own unit, on a disk that was blank
		"blkid -s LABEL -o value /dev/disk/by-id/google-quorate-data":   "quorate-data",
		"findmnt -n -o FSTYPE /var/lib/quorate":                         "ext4",
		"grep COLOUR /run/environment":                                  "COLOUR=blue",
		"grep WATCHDOG_USEC /run/environment":                           "WATCHDOG_USEC=2000000",
		"grep -c nameserver /etc/resolv.conf":                           "1",
		"grep ^0:: /proc/$(systemctl show -P MainPID quorate)/cgroup":   "0::/system.slice/quorate.service",
		"echo 7 > /proc/sys/kernel/panic && cat /proc/sys/kernel/panic": "7",
		"echo 7 > /proc/sys/kernel/threads-max || echo refused": "sh: 1: cannot create " +
			"/proc/sys/kernel/threads-max: Read-only file system\nrefused",
	} {
		if got, err := w.in("a", script); strings.TrimSpace(got) != want || err != nil {
			t.Errorf("%s: %q (%v), want %q", script, got, err, want)
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/panic"); err != nil || strings.TrimSpace(string(b)) == "7" {
		t.Errorf("a VM has changed the machine's kernel.panic: %s, %v", b, err)
	}
	if a, b := w.bootID("a"), w.bootID("b"); a == b || len(a) != 36 {
		t.Errorf("boot ids %q and %q", a, b)
	}
	const agents = "cat /proc/$(systemctl show -P MainPID quorate)/root/proc/sys/kernel/random/boot_id"
	if got := strings.TrimSpace(w.must("a", agents)); got != w.bootID("a") {
		t.Errorf("the agent is of boot %q, its VM of %q", got, w.bootID("a"))
	}
	if !w.reaches("b", "https://"+w.address("a")+"/") {
		t.Error("b does not reach a")
	}
	w.must("a", "echo line > /var/log/quorate/etcd.log")
	if b, err := os.ReadFile(filepath.Join(w.vm("a").LogFolder, "etcd.log")); string(b) != "line\n" {
		t.Errorf("the log folder: %q, %v", b, err)
	}
	w.await("the console is in the VM's log", func() bool {
		b, err := os.ReadFile(w.vm("a").Log)
		return err == nil && strings.Contains(string(b), "the tiny agent is ready")
	})
}

func TestSystemdKeepsTheAgent(t *testing.T) {
	w := start(t, systemdConfig(t, 28, "a"))
	w.awaitReady("a")
	agent := w.vm("a").Agent
	if agent.Status != "all is well" || agent.Restarts != 0 || agent.PID == 0 || agent.LastExit != "" {
		t.Errorf("the agent's status: %+v", agent)
	}
	held, err := w.Command(t.Context(), "a", "sh", "-c",
		fmt.Sprintf("mkfifo /run/hold; kill -9 %d; cat /run/hold", agent.PID))
	w.do(err)
	var said strings.Builder
	held.Stdout = &said
	w.do(held.Start())
	w.await("restarted", func() bool { return w.vm("a").Agent.Restarts == 1 })
	w.awaitReady("a")
	if s := w.vm("a").Agent; s.LastExit != "signal SIGKILL" || s.PID == agent.PID {
		t.Errorf("after the kill: %+v", s)
	}
	if got := strings.TrimSpace(w.must("a", "pgrep -c sleep")); got != "1" {
		t.Errorf("%s children of the agent after the restart", got)
	}
	w.must("a", "timeout 5 sh -c 'echo lived on > /run/hold'")
	if err := held.Wait(); err != nil || said.String() != "lived on\n" {
		t.Errorf("a command that was running when the agent died: %q, %v", said.String(), err)
	}

	// The clock goes on while the VM stands: without help systemd would take the agent for hung.
	w.do(w.FreezeVM(t.Context(), "a"))
	time.Sleep(3 * time.Second)
	w.do(w.ThawVM(t.Context(), "a"))
	time.Sleep(500 * time.Millisecond)
	if s := w.vm("a").Agent; s.Restarts != 1 || s.State != "ready" {
		t.Errorf("after a freeze that was longer than the watchdog's interval: %+v", s)
	}
	w.must("a", "systemctl service-watchdogs yes; touch /run/no-pings")
	w.await("the watchdog bites", func() bool { return w.vm("a").Agent.Restarts == 2 })
	if s := w.vm("a").Agent; s.LastExit != "exit status 2 (watchdog)" { // Go's runtime ends so after its stacks
		t.Errorf("after the bite: %+v", s)
	}
}

func TestPowerOfSystemdVMs(t *testing.T) {
	w := start(t, systemdConfig(t, 29, "a"))
	w.awaitReady("a")
	ctx, first, boot := t.Context(), w.vm("a"), w.bootID("a")
	w.must("a", "echo kept > "+data+"file; sync; touch /root/boot-disk")

	// What version 1's freezer holds cannot be killed, and must not outlive the VM. Not every machine has that freezer.
	// The braces redirect before the fork: a shell that is frozen before it runs sleep must not hold the command's
	// pipe, for whose end the test waits.
	w.must("a", `test -d /sys/fs/cgroup/freezer || exit 0
		mkdir /sys/fs/cgroup/freezer/held && cd /sys/fs/cgroup/freezer/held
		{ sleep 1000 & } >/dev/null 2>&1
		echo $! > cgroup.procs && echo FROZEN > freezer.state`)
	since := time.Now()
	w.do(w.KillVM(ctx, "a"))
	if took := time.Since(since); took > 5*time.Second {
		t.Errorf("a kill took %s", took)
	}
	if left, _ := filepath.Glob("/sys/fs/cgroup/*/lgce-*/a"); len(left) > 0 && w.vm("a").Status == "TERMINATED" {
		fabric, _ := localgce.FabricAndLink(w.conf.State)
		for _, path := range left {
			if strings.Contains(path, fabric) {
				t.Errorf("left behind by a kill: %s", path)
			}
		}
	}
	w.do(w.StartVM(ctx, "a"))
	w.awaitReady("a")
	if w.vm("a").InstanceID != first.InstanceID || w.bootID("a") == boot {
		t.Error("a power cycle keeps the instance id and changes the boot id")
	}
	w.must("a", "grep kept "+data+"file && ! test -e /root/boot-disk")

	w.do(w.StopVM(ctx, "a"))
	if status := w.vm("a").Status; status != "TERMINATED" {
		t.Errorf("stopped: %s", status)
	}
	w.do(w.StartVM(ctx, "a"))
	w.awaitReady("a")
	w.must("a", "test -f "+data+"stopped-in-order")

	w.do(w.RecreateVM(ctx, "a", localgce.Recreation{}))
	w.awaitReady("a")
	w.must("a", "grep kept "+data+"file")
	w.do(w.RecreateVM(ctx, "a", localgce.Recreation{Wipe: true}))
	w.awaitReady("a")
	if got := w.must("a", "ls -A "+data); got != "lost+found\n" || w.vm("a").DiskID == first.DiskID {
		t.Errorf("the wiped disk %s holds %q", w.vm("a").DiskID, got)
	}
	w.do(w.HostError(ctx, "a", localgce.HostError{}))
	w.awaitReady("a")
	w.do(w.KillVM(ctx, "a.1"))

	// A disk that is no file system's and not blank is somebody's: the image's unit leaves it alone.
	w.do(w.KillVM(ctx, "a"))
	disks, _ := filepath.Glob(filepath.Join(w.DiskFolder(), "a-data-*.img"))
	for _, d := range disks {
		b := make([]byte, 1<<20)
		copy(b[4096:], "somebody's")
		w.do(os.WriteFile(d, b, 0o600))
		w.do(os.Truncate(d, 32<<20))
	}
	w.do(w.StartVM(ctx, "a"))
	w.await("the console says why the disk is not mounted", func() bool {
		b, err := os.ReadFile(w.vm("a").Log)
		return err == nil && strings.Contains(string(b), "it is not blank either")
	})
	w.must("a", "! mountpoint -q "+data)
}

// The VM's own guard cuts its power.
func TestSystemdVMsDieWithTheirProject(t *testing.T) {
	conf := systemdConfig(t, 30)
	cmd := startProcess(t, conf.State, "systemd")
	c, err := localgce.NewClient(conf.State)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	since := time.Now()
	for _, v := range s.VMs {
		for gone := false; !gone; time.Sleep(10 * time.Millisecond) {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.InitPID))
			gone = err != nil || strings.Contains(string(b), ") Z ")
			if time.Since(since) > 10*time.Second {
				t.Fatalf("%s outlives its project", v.Name)
			}
		}
	}
	t.Logf("all VMs were dead after %s", time.Since(since))
	if err := localgce.Sweep(t.Context(), conf.State); err != nil {
		t.Error(err)
	}
	wantNoTraces(t, conf.State)
	t.Run("also one that is frozen", func(t *testing.T) { dieAndSweep(t, "systemd") })
}

func TestPreflightOfSystemdVMs(t *testing.T) {
	conf := config(t.TempDir(), 31, "a")
	conf.Kind = localgce.SystemdVMs
	if _, err := localgce.Start(t.Context(), conf); err == nil || !strings.Contains(err.Error(), "need both") {
		t.Errorf("without an image: %v", err)
	}
	conf.Kind, conf.Image = "container", "x"
	if _, err := localgce.Start(t.Context(), conf); err == nil ||
		!strings.Contains(err.Error(), `kind "container": process and systemd are known`) {
		t.Errorf("another kind: %v", err)
	}
	if missing := localgce.MissingInotify(1 << 20); len(missing) != 1 ||
		!strings.Contains(missing[0], "sysctl -w fs.inotify.max_user_instances=1024") {
		t.Errorf("for a million VMs: %q", missing)
	}
}
