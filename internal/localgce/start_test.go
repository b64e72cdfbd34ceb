package localgce_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/realtest"
)

func TestConfigNamesEveryFault(t *testing.T) {
	conf := config(t.TempDir(), 1, "a", "a", "B")
	conf.Endpoint = conf.Subnet.Addr().Next()
	conf.DiskSize = 1
	conf.Binds = append(conf.Binds, localgce.Bind{Host: "/x", Guest: "y"})
	conf.VMs[0].Address = conf.Endpoint
	_, err := localgce.Start(t.Context(), conf)
	for _, want := range []string{"endpoint 10.243.1.1", "disk size 1", `bind "/x" to "y"`, "vm a is given twice",
		`vm "B"`, "vm a: address 10.243.1.1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %q: %v", want, err)
		}
	}
	if _, err := localgce.Start(t.Context(), localgce.Config{}); err == nil {
		t.Error("no state folder is accepted")
	}
}

func TestStartRefusesWhatIsInUse(t *testing.T) {
	conf := config(t.TempDir(), 8, "a")
	w := start(t, conf)
	if _, err := localgce.Start(t.Context(), conf); !errors.Is(err, localgce.ErrUp) {
		t.Errorf("a second project in the folder: %v", err)
	}
	other := config(t.TempDir(), 8, "a")
	_, err := localgce.Start(t.Context(), other)
	if err == nil || !strings.Contains(err.Error(),
		"subnet 10.243.8.0/25: the range is in use on this machine: 10.243.8.0/25 on lgce") {
		t.Errorf("a second project in the range: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "or end the project of "+conf.State) {
		t.Errorf("the error does not name the project that has the range: %v", err)
	}
	wantNoTraces(t, other.State)
	w.must("a", "true") // the first has not suffered

	// Without a host route the same range may be used twice.
	second := config(t.TempDir(), 8, "a")
	second.NoHostRoute = true
	p := start(t, second)
	p.must("a", "true")
}

func TestStartThatFailsLeavesNothing(t *testing.T) {
	needRoot(t)
	conf := config(t.TempDir(), 9, "a", "b")
	conf.Binds = append(conf.Binds, localgce.Bind{Host: "/no/such/file", Guest: "/etc/thing"})
	_, err := localgce.Start(t.Context(), conf)
	if err == nil || !strings.Contains(err.Error(), "bind to") || !strings.Contains(err.Error(), "/no/such/file") {
		t.Errorf("a bind of nothing: %v", err)
	}
	wantNoTraces(t, conf.State)
}

// projectProcess is a project in a process of its own: it says on standard output when it is up.
func projectProcess(state string, more string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	conf := config(state, 10, "a", "b")
	switch more {
	case "reflink":
		conf.Reflink = true
	case "systemd":
		if err := useSystemd(&conf); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	p, err := localgce.Start(ctx, conf)
	if err == nil {
		err = p.Run(ctx, func() { fmt.Println("up") })
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// startProcess starts projectProcess and waits until it is up.
func startProcess(t *testing.T, state string, more ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"project", state}, more...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Fatalf("the project's process says %q", line)
	}
	return cmd
}

func TestAClientDrivesAProject(t *testing.T) {
	needRoot(t)
	// A folder whose path is too long for a socket's.
	state := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	c, err := localgce.NewClient(state)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); !errors.Is(err, localgce.ErrDown) {
		t.Errorf("before the start: %v", err)
	}
	cmd := startProcess(t, state)
	ctx := t.Context()
	kill := func() error { _, err := c.Do(ctx, "vm/kill", "vm=a"); return err }
	if err := kill(); err != nil {
		t.Error(err)
	}
	if err := kill(); err == nil || err.Error() != "vm a is TERMINATED; this needs it to be RUNNING" {
		t.Errorf("killed twice: %v", err)
	}
	for _, order := range []string{"net/cut vm=b", "net/partition vm=a to=b one-way", "vm/freeze vm=b"} {
		words := strings.Fields(order)
		if _, err := c.Do(ctx, words[0], words[1:]...); err != nil {
			t.Errorf("%s: %v", order, err)
		}
	}
	s, err := c.Status(ctx)
	if err != nil || s.VMs[0].Status != "TERMINATED" || !s.VMs[1].Cut || !s.VMs[1].Frozen || len(s.Partitions) != 1 {
		t.Errorf("status %+v, %v", s, err)
	}
	if _, err := c.VM(ctx, "c"); err == nil || !strings.Contains(err.Error(), `no vm is named "c"; there are a, b`) {
		t.Errorf("an unknown vm: %v", err)
	}
	if wasUp, err := c.Down(ctx); err != nil || !wasUp {
		t.Errorf("down: %v, %v", wasUp, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the project's process: %v", err)
	}
	wantNoTraces(t, state)
	if wasUp, err := c.Down(ctx); err != nil || wasUp {
		t.Errorf("down again: %v, %v", wasUp, err)
	}
}

func TestADeadProjectIsSweptAndTakenUp(t *testing.T) {
	needRoot(t)
	t.Run("plain disks", func(t *testing.T) { dieAndSweep(t) })
	t.Run("disks on a volume", func(t *testing.T) { dieAndSweep(t, "reflink") })
}

// A test run that was killed, or a machine's owner who removed the folder, must not bar the range for good.
func TestTheRangeOfADeadProjectIsFree(t *testing.T) {
	realtest.OnlyInCases(t)
	needRoot(t)
	for _, folder := range []string{"stays", "is removed"} {
		t.Run("its folder "+folder, func(t *testing.T) {
			dead := t.TempDir()
			cmd := startProcess(t, dead)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if folder == "is removed" {
				if err := os.RemoveAll(filepath.Join(dead, "state.json")); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(dead, "disks"), filepath.Join(t.TempDir(), "disks")); err != nil {
					t.Fatal(err)
				}
			}
			w := start(t, config(t.TempDir(), 10, "a"))
			w.must("a", "true")
			wantNoTraces(t, dead)
		})
	}
}

func dieAndSweep(t *testing.T, more ...string) {
	state := t.TempDir()
	c, err := localgce.NewClient(state)
	if err != nil {
		t.Fatal(err)
	}
	kill := func(cmd *exec.Cmd) localgce.Status {
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// A frozen VM cannot follow its project by itself.
		if _, err := c.Do(t.Context(), "vm/freeze", "vm=b"); err != nil {
			t.Fatal(err)
		}
		// Nobody thaws a's disk.
		if _, err := c.Do(t.Context(), "disk/freeze", "vm=a", "for=1m"); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return s
	}
	first := kill(startProcess(t, state, more...))
	if _, err := c.Status(t.Context()); !errors.Is(err, localgce.ErrDown) {
		t.Errorf("a dead project: %v", err)
	}
	if len(traces(t, state)) == 0 {
		t.Error("the dead project left nothing to sweep: this test shows nothing")
	}
	// The next start sweeps, and its VMs are the same instances.
	second := kill(startProcess(t, state, more...))
	for i, v := range second.VMs {
		if v.InstanceID != first.VMs[i].InstanceID || v.DiskID != first.VMs[i].DiskID ||
			v.Address != first.VMs[i].Address {
			t.Errorf("taken up as %+v, was %+v", v, first.VMs[i])
		}
	}
	if err := localgce.Sweep(t.Context(), state); err != nil {
		t.Error(err)
	}
	wantNoTraces(t, state)

	// One that hangs is killed.
	hung := startProcess(t, state, more...)
	_ = hung.Process.Signal(syscall.SIGSTOP)
	if err := os.RemoveAll(state); err != nil { // somebody was hasty
		t.Error(err)
	}
	since := time.Now()
	if err := localgce.Sweep(t.Context(), state); err != nil {
		t.Error(err)
	}
	t.Logf("a hung project was swept in %s", time.Since(since))
	wantNoTraces(t, state)
}
