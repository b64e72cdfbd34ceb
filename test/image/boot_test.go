package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	// bootLimit: without KVM a quiet machine takes one minute to the agent and three to a Node. One with a load of 15 a
	// core takes more than ten times that.
	bootLimit = 90 * time.Minute
	dataSize  = 1 << 30
)

// baked is the folder of a baked image, absolute; the test is skipped without one. What it runs is for the image's
// architecture.
func baked(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("QUORATE_IMAGE")
	if dir == "" || os.Geteuid() != 0 {
		t.Skip("needs root, and a baked image in QUORATE_IMAGE: make image-test")
	}
	if !filepath.IsAbs(dir) {
		t.Fatalf("QUORATE_IMAGE is %q, want an absolute path", dir)
	}
	t.Setenv("ARCH", architecture(t, dir))
	return dir
}

// machine is what serial says of a machine that boots. QEMU is controlled by socket.
type machine struct {
	serial, socket string
	ended          chan error
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\r")

// console is what the machine has printed so far.
func (m *machine) console() string {
	text, _ := os.ReadFile(m.serial) // before the first line there is none
	return escapes.ReplaceAllString(string(text), "")
}

// await waits until the console has a line that matches.
func (m *machine) await(t *testing.T, pattern string) {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	m.until(t, pattern, func() bool { return wanted.MatchString(m.console()) })
}

// until waits until something holds, while the machine runs.
func (m *machine) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	begin := time.Now()
	for !holds() {
		select {
		case err := <-m.ended:
			t.Fatalf("the machine ended (%v) without %q:\n%s", err, what, m.console())
		case <-time.After(time.Second):
		}
		if time.Since(begin) > bootLimit {
			t.Fatalf("no %q after %v:\n%s", what, bootLimit, m.console())
		}
	}
	t.Logf("%s: after %v", what, time.Since(begin).Round(time.Second))
}

// blank makes the file of a blank disk.
func blank(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.raw")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, dataSize); err != nil {
		t.Fatal(err)
	}
	return path
}

// boot starts a machine of a 10 GB boot disk and a data disk, or none, in a network. It runs until the test ends; what
// it printed on its serial console stays beside the image.
func boot(t *testing.T, n *network, image, data string) *machine {
	t.Helper()
	arch := architecture(t, image)
	e := emulators[arch]
	qemu, err := exec.LookPath(e.program)
	if err != nil {
		t.Fatalf("%s is not installed: ARCH=%s images/deps.sh guest", e.program, arch)
	}
	tools := strings.TrimSpace(run(t, master+"tools.sh"))
	dir := t.TempDir()
	disk, vars := filepath.Join(dir, "disk.raw"), filepath.Join(dir, "vars.fd")
	run(t, "cp", "--sparse=always", filepath.Join(image, "disk.raw"), disk)
	run(t, "cp", filepath.Join(tools, e.variables), vars)
	if err := os.Truncate(disk, 10<<30); err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(image, "serial")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		t.Fatal(err)
	}
	m := &machine{serial: filepath.Join(logs, t.Name()+".log"), socket: filepath.Join(dir, "qmp"),
		ended: make(chan error, 1)}
	if err := os.RemoveAll(m.serial); err != nil {
		t.Fatal(err)
	}
	// The machine's clock counts its instructions, so time-outs in it do not depend on how busy this one is. That
	// takes one processor.
	cmd := exec.Command(qemu, "-machine", e.machine, "-accel", "tcg,thread=single", "-icount", "shift=1", "-cpu", e.cpu,
		"-smp", "1", "-m", "3072",
		"-display", "none", "-no-reboot", "-serial", "file:"+m.serial,
		"-drive", "if=pflash,format=raw,readonly=on,file="+filepath.Join(tools, e.firmware),
		"-drive", "if=pflash,format=raw,file="+vars,
		"-netdev", "tap,id=net,ifname=tap0,script=no,downscript=no",
		"-device", "virtio-net-pci,netdev=net,romfile=,mac="+hardware, // nothing boots from the network
		"-qmp", "unix:"+m.socket+",server=on,wait=off",
		"-device", "virtio-scsi-pci,id=scsi0", "-drive", "if=none,id=boot,format=raw,cache=unsafe,file="+disk,
		"-device", "scsi-hd,drive=boot")
	if data != "" {
		cmd.Args = append(cmd.Args, "-drive", "if=none,id=data,format=raw,cache=unsafe,file="+data,
			"-device", "virtio-blk-pci,drive=data,serial=quorate-data")
	}
	n.start(t, cmd)
	go func() { m.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		if t.Failed() {
			t.Log(m.console())
		}
	})
	return m
}
