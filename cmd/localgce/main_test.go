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
		{"up", exitUsage, "no --vm is given"},
		{"up --vm a", exitUsage, `--vm "a": NAME@ZONE or NAME@ZONE@ADDRESS is needed`},
		{"up --vm a@b@c", exitUsage, `address "c"`},
		{"up --vm a@z --subnet ten", exitUsage, `--subnet "ten"`},
		{"up --vm a@z --disk-size 4TB", exitUsage, `--disk-size "4TB"`},
		{"up --vm a@z --bind x", exitUsage, `--bind "x"`},
		{"up --vm a@z --bind absent:/x", exitUsage, "no such file"},
		{"up --vm a@z --cluster absent", exitUsage, "--cluster: open absent"},
		{"up --wm a@z", exitUsage, "unknown flag: --wm (see localgce up --help)"},
		{"attribute set k=f", exitUsage, "either a vm's name or --all is needed"},
		{"vm recreate a b --address 10.0.0.1", exitUsage, "--address is for one vm, 2 are named"},
		{"vm create a", exitUsage, `"a": NAME@ZONE or NAME@ZONE@ADDRESS is needed`},
		{"disk fill a --leave much", exitUsage, `--leave "much": a number of bytes`},
		{"disk clone a", exitUsage, "--to is needed"},
		{"disk swap a", exitUsage, "accepts 2 arg(s), received 1"},
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
		if out, code := localgceIn(t, t.TempDir(), strings.Fields(args)...); code != 0 || !strings.Contains(out, "Run a command in a VM") {
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
	if !c.Binds[0].ReadOnly || c.Binds[0].Guest != "/srv/bucket" || strings.Join(c.Agent.Command, " ") != "/bin/agent run" {
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
	up := []string{"up", "--subnet", "10.243.20.0/25", "--vm", "a@us-central1-a", "--vm", "b@us-central1-b", "--agent", "/bin/sleep 1000", "--disk-size", "32MiB", "--reflink"}
	step("The project is up after", 0, up...)
	step("the project is up already", exitUp, up...)
	step("hello\n", 5, "vm", "exec", "a", "--", "sh", "-c", "echo hello; exit 5")
	step("-n -- x ", 0, "vm", "exec", "a", "printf", "%s ", "-n", "--", "x") // the dashes behind the command's name are its own
	step("there is no log of a's etcd; there are: none in", 1, "vm", "logs", "a", "etcd")
	step("there is no log of c; there are: a, b", 1, "vm", "logs", "c")
	step("a is off (", 0, "vm", "kill", "a")
	step("vm a is TERMINATED; this needs it to be RUNNING", 1, "vm", "exec", "a", "--", "true")
	step("terminated", 0, "vm", "list")
	step("a is started (", 0, "vm", "start", "a")
	step("b is recreated (", 0, "vm", "recreate", "--wipe", "b")
	step("the link of a: bandwidth 50MiB", 0, "net", "limit", "a", "--bandwidth", "50MiB")
	step("0 connections between a and b are broken", 0, "net", "reset", "a", "b")
	step("is no folder that is shown", 1, "fault", "bind", "all", "/srv", "hang")
	step("the disk of a is full", 0, "disk", "fill", "a", "--leave", "1MiB")
	step("the disk of a has space again", 0, "disk", "free", "a")
	step("the disk of a is frozen", 0, "disk", "freeze", "a", "--for", "5s")
	step("the disk of a takes writes again", 0, "disk", "thaw", "a")
	step("the disk of a is kept", 0, "disk", "snapshot", "a", "s")
	step("the disk of a is torn, and its vm is off", 0, "disk", "tear", "--by-copy", "a")
	step("a is started (", 0, "vm", "start", "a")
	step("the disk of a is torn, and its vm is off", 0, "disk", "tear", "a")
	step("the disk of a is as it was", 0, "disk", "restore", "a", "s", "--same-id")
	step("no file of the disk fits", 1, "disk", "corrupt", "a", "x")
	step("a is started (", 0, "vm", "start", "a")
	step("c is created (", 0, "vm", "create", "c@us-central1-c")
	step("vm c is RUNNING; this needs it to be TERMINATED", 1, "disk", "clone", "a", "--to", "c")
	step("c is off (", 0, "vm", "kill", "c")
	step("the disk of a is cloned", 0, "disk", "clone", "a", "--to", "c")
	step("c is deleted (", 0, "vm", "delete", "c")
	step("the disk of c-data is deleted", 0, "disk", "delete", "c-data", "us-central1-c")
	step("b is recreated (", 0, "vm", "recreate", "--leave-old-running", "--address", "auto", "b")
	step("b.1", 0, "vm", "list")
	step("b.1 is deleted (", 0, "vm", "delete", "b.1")
	step("a does not reach b", 0, "net", "partition", "a", "b", "--one-way")
	step("a does not reach b", 0, "status")
	step("the network is whole", 0, "net", "heal")
	step("started /bin/sleep as pid", 0, "vm", "logs", "a")
	step("maintenance-event of a: MIGRATE_ON_HOST_MAINTENANCE", 0, "vm", "maintenance", "a", "MIGRATE_ON_HOST_MAINTENANCE")
	step("Compute API: missing", 0, "fault", "compute", "missing", "--vm", "b", "--caller", "a")
	step("metadata server of all: away", 0, "fault", "metadata", "all", "away")
	step("name server of a: silent", 0, "fault", "names", "a", "silent")
	step("Compute API: empty", 0, "fault", "compute", "empty")

	var vms []localgce.VMStatus
	if err := json.Unmarshal([]byte(step("", 0, "vm", "list", "-o", "json")), &vms); err != nil || len(vms) != 2 || vms[0].Name != "a" {
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
