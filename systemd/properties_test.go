package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/quorate/quorate/systemd/kubeletwatch"
)

func TestUnitOfReadsWhatSystemdSays(t *testing.T) {
	got := unitOf(properties{
		"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "Result": "success",
		"KillMode": "process", "MainPID": uint32(7), "ExecMainStartTimestampMonotonic": uint64(60_000_000),
		"WatchdogTimestampMonotonic": uint64(75_000_000), "WatchdogUSec": uint64(30_000_000), "NRestarts": uint32(2),
		"ExecMainCode": int32(0), "ExecMainStatus": int32(0), "Job": []any{uint32(5), "/a/job"},
	})
	want := kubeletwatch.Unit{Load: "loaded", Active: "active", Sub: "running",
		Result: "success", KillMode: "process", PID: 7, Started: time.Minute, Pinged: 75 * time.Second,
		PingEvery: 30 * time.Second, Restarts: 2, Job: true}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	got = unitOf(properties{"WatchdogUSec": ^uint64(0), "Job": []any{uint32(0), "/"}, "Result": "watchdog",
		"ExecMainCode": int32(3), "ExecMainStatus": int32(6)})
	want = kubeletwatch.Unit{Result: "watchdog", Exit: "SIGABRT by systemd's watchdog"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestExitText(t *testing.T) {
	for want, got := range map[string]string{
		"": exitText(0, 0, "success"), "exit code 1": exitText(1, 1, "exit-code"), "SIGKILL": exitText(2, 9, "signal"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCgroupOfAUnitThatIsDown(t *testing.T) {
	for _, tc := range []struct {
		all  properties
		want string
	}{
		{properties{"ControlGroup": "/system.slice/a.service"}, "/system.slice/a.service"},
		{properties{"ControlGroup": "", "Slice": "system.slice"}, "/system.slice/a.service"},
		{properties{"Slice": "pod-runtime.slice"}, "/pod.slice/pod-runtime.slice/a.service"},
		{properties{}, ""},
	} {
		if got := cgroupOf("a.service", tc.all); got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.all, got, tc.want)
		}
	}
}

// A process that has SIGKILL pending and has not ended is told from one that lives and from one that has ended.
func TestKillPending(t *testing.T) {
	for name, tc := range map[string]struct {
		state, own, shared string
		want               bool
	}{
		"it lives":                  {"S (sleeping)", "0000000000000000", "0000000000000000", false},
		"it was sent another":       {"S (sleeping)", "0000000000000000", "0000000000004000", false},
		"it does not end":           {"D (disk sleep)", "0000000000000100", "0000000000000000", true},
		"all its threads do not":    {"D (disk sleep)", "0000000000000000", "0000000000000100", true},
		"its parent has not waited": {"Z (zombie)", "0000000000000000", "0000000000000100", false},
	} {
		folder := filepath.Join(t.TempDir(), "42")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		status := fmt.Sprintf("Name:\ta: b\nState:\t%s\nSigPnd:\t%s\nShdPnd:\t%s\n", tc.state, tc.own, tc.shared)
		stat := "42 (a) b) D 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21"
		for file, text := range map[string]string{"status": status, "stat": stat} {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := killPending(folder)
		if (got != nil) != tc.want || got != nil && *got != (kubeletwatch.Process{PID: 42, Started: 777}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if p := killPending(filepath.Join(t.TempDir(), "1")); p != nil {
		t.Errorf("a process that has gone: %+v", p)
	}
}

// The start that is read is the kernel's own word.
func TestStartTicksOfAProcess(t *testing.T) {
	first := startTicks("/proc/self")
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if child := startTicks(fmt.Sprintf("/proc/%d", cmd.Process.Pid)); first == 0 || child < first {
		t.Errorf("this process began at %d, its child at %d", first, child)
	}
}
