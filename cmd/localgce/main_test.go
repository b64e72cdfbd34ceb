package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce"
)

// TestMain is also the command itself, the project's process and the VMs' pid 1: all are this program started again.
func TestMain(m *testing.M) {
	localgce.RunInitIfAsked()
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Getenv("LOCALGCE_TEST_COMMAND") != "") {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// localgceIn runs the command in a process of its own and returns what it printed and its exit code.
func localgceIn(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LOCALGCE_TEST_COMMAND=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestMistakesAreNamed(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"status", exitDown, "no project is up in "},
		{"vm list", exitDown, "no project is up in "},
		{"dance", exitUsage, `unknown command "dance"`},
		{"vm dance", exitUsage, `unknown command "dance"`},
		{"vm kill", exitUsage, "requires at least 1 arg(s)"},
		{"vm list -o xml", exitUsage, `--output "xml": json is known`},
		{"up --vm a", exitUsage, `--vm "a": NAME@ZONE or NAME@ZONE@ADDRESS is needed`},
		{"up --vm a@b@c", exitUsage, `address "c"`},
		{"up --vm a@z --subnet ten", exitUsage, `--subnet "ten"`},
		{"up --vm a@z --disk-size 4TB", exitUsage, `--disk-size "4TB"`},
		{"up --vm a@z --bind x", exitUsage, `--bind "x"`},
		{"up --vm a@z --bind absent:/x", exitUsage, "no such file"},
		{"up --vm a@z --cluster absent", exitUsage, "--cluster: open absent"},
		{"up --wm a@z", exitUsage, "unknown flag: --wm (see localgce up --help)"},
		{"do", exitUsage, "requires at least 1 arg(s)"},
		{"do disk/eat", exitUsage, `there is no verb "disk/eat" (see localgce do --help)`},
		{"do disk/fill vm=a leave=much", exitUsage, `disk/fill: leave=much: "much": a number of bytes`},
		{"do disk/freeze vm=a for=ever", exitUsage, "disk/freeze: for=ever: "},
		{"do disk/clone vm=a", exitUsage, "disk/clone needs to=..."},
		{"do disk/swap vm=a to=b zone=c", exitUsage, `disk/swap has no field "zone"; its fields are vm to`},
		{"do vm/recreate vm=a wipe", exitDown, "no project is up in "},
		{"vm logs a", exitFailure, "there is no log of a; there are: none in "},
		{"vm logs a etcd", exitFailure, "there is no log of a's etcd; there are: none in "},
		{"vm exec a", exitUsage, "requires at least 2 arg(s)"},
		{"vm exec a --", exitUsage, "requires at least 2 arg(s)"},
		{"help dance", exitUsage, `there is no command "dance"`},
	} {
		out, code := localgceIn(t, t.TempDir(), strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.says) || strings.Count(out, "\n") != 1 {
			t.Errorf("localgce %s: %d %q; want %d and one line with %q", c.args, code, out, c.code, c.says)
		}
	}
}

func TestExecHelpsWithoutAProject(t *testing.T) {
	for _, args := range []string{"vm exec --help", "vm exec a --help", "vm exec a -h"} {
		if out, code := localgceIn(t, t.TempDir(), strings.Fields(args)...); code != 0 ||
			!strings.Contains(out, "Run a command in a VM") {
			t.Errorf("localgce %s: %d %q", args, code, out)
		}
	}
}

func TestUpFlagsBecomeAConfig(t *testing.T) {
	dir := t.TempDir()
	document := filepath.Join(dir, "cluster.yaml")
	text := "name: demo\nendpoint:\n  internalIP: 10.240.0.50\nunknown: kept\n"
	if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &upFlags{
		vms: []string{"a@z", "b@y@10.240.0.9"}, cluster: document, binds: []string{dir + ":/srv/bucket:ro"},
		subnet: "10.240.0.0/24", diskSize: "512MiB", agent: "/bin/agent run",
	}
	c, err := f.config("st")
	if err != nil {
		t.Fatal(err)
	}
	if c.Cluster != "demo" || c.Endpoint.String() != "10.240.0.50" || c.Attributes[clusterAttribute] != text {
		t.Errorf("the document: %+v", c)
	}
	if len(c.VMs) != 2 || c.VMs[1].Address.String() != "10.240.0.9" || c.VMs[0].Zone != "z" || c.DiskSize != 512<<20 {
		t.Errorf("vms: %+v", c)
	}
	if !c.Binds[0].ReadOnly || c.Binds[0].Guest != "/srv/bucket" ||
		strings.Join(c.Agent.Command, " ") != "/bin/agent run" {
		t.Errorf("binds and agent: %+v", c)
	}
}

// TestADayOfAProject walks through the commands that a person uses.
func TestADayOfAProject(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces, mounts, loop devices")
	}
	dir := t.TempDir()
	step := func(says string, code int, args ...string) string {
		t.Helper()
		out, got := localgceIn(t, dir, args...)
		if got != code || !strings.Contains(out, says) {
			t.Errorf("localgce %q: %d\n%s\nwant %d and %q", args, got, out, code, says)
		}
		return out
	}
	t.Cleanup(func() { localgceIn(t, dir, "down") })
	up := []string{"up", "--subnet", "10.242.0.0/25", "--vm", "a@us-central1-a", "--vm", "b@us-central1-b", "--agent",
		"/bin/sleep 1000", "--disk-size", "32MiB", "--reflink"}
	step("The project is up after", 0, up...)
	step("the project is up already", exitUp, up...)
	step("hello\n", 5, "vm", "exec", "a", "--", "sh", "-c", "echo hello; exit 5")
	// the dashes behind the command's name are its own
	step("-n -- x ", 0, "vm", "exec", "a", "printf", "%s ", "-n", "--", "x")
	step("there is no log of a's etcd; there are: none in", 1, "vm", "logs", "a", "etcd")
	step("has it in its journal: localgce vm exec a -- journalctl -t etcd", 1, "vm", "logs", "a", "etcd")
	step("there is no log of c; there are: a, b", 1, "vm", "logs", "c")
	step("a is off (", 0, "vm", "kill", "a")
	step("vm a is TERMINATED; this needs it to be RUNNING", 1, "vm", "exec", "a", "--", "true")
	step("terminated", 0, "vm", "list")
	step("a is started (", 0, "vm", "start", "a")
	step("b is recreated (", 0, "vm", "recreate", "--wipe", "b")
	do := func(order string) {
		t.Helper()
		step("done", 0, append([]string{"do"}, strings.Fields(order)...)...)
	}
	do("net/limit vm=a bandwidth=50MiB")
	step("0 connections are broken", 0, "do", "net/reset", "vm=a", "to=b")
	do("disk/fill vm=a leave=1MiB")
	do("disk/free vm=a")
	do("disk/grow vm=a capacity=64MiB")
	step("a disk only grows, and it has 67108864", 1, "do", "disk/grow", "vm=a", "capacity=64MiB")
	do("disk/freeze vm=a for=5s")
	do("disk/thaw vm=a")
	do("disk/snapshot vm=a snapshot=s")
	do("disk/tear-by-copy vm=a")
	step("a is started (", 0, "vm", "start", "a")
	do("disk/tear vm=a")
	do("disk/restore vm=a snapshot=s same-id")
	step("no file of the disk fits", 1, "do", "disk/corrupt", "vm=a", "path=x")
	step("a is started (", 0, "vm", "start", "a")
	do("vm/create vm=c zone=us-central1-c")
	step("vm c is RUNNING; this needs it to be TERMINATED", 1, "do", "disk/clone", "vm=a", "to=c")
	step("c is off (", 0, "vm", "kill", "c")
	do("disk/clone vm=a to=c")
	do("vm/delete vm=c")
	do("disk/delete disk=c-data zone=us-central1-c")
	do("vm/recreate vm=b leave-running address=auto")
	step("b.1", 0, "vm", "list")
	do("vm/delete vm=b.1")
	step("a is cut off", 0, "net", "cut", "a")
	do("net/partition vm=a to=b one-way")
	step("a does not reach b", 0, "status")
	step("the network is whole", 0, "net", "heal")
	step("started /bin/sleep as pid", 0, "vm", "logs", "a")
	do("vm/maintenance vm=a event=MIGRATE_ON_HOST_MAINTENANCE")
	do("attribute/set vm=a key=k value=v")
	do("attribute/remove key=k")
	do("fault service=compute kind=missing vms=b vm=a")
	do("fault service=metadata kind=slow delay=10s")
	do("fault/names vm=a kind=silent")
	do("fault service=compute")

	var vms []localgce.VMStatus
	if err := json.Unmarshal([]byte(step("", 0, "vm", "list", "-o", "json")), &vms); err != nil || len(vms) != 2 ||
		vms[0].Name != "a" {
		t.Errorf("the list as JSON: %+v, %v", vms, err)
	}
	step("The project is down. Its logs and disks stay in _demo.", 0, "down")
	step("No project was up; nothing of _demo is left on this machine.", 0, "down")
}

func TestLogsFollow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := copyLog(ctx, &out, strings.NewReader("one\ntwo\n"), true); err != nil || out.String() != "one\ntwo\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
