package image

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce"
)

// bootLimit: without KVM a quiet machine takes one minute, a busy one four.
const bootLimit = 10 * time.Minute

// baked is the folder of a baked image, absolute; the test is skipped without one.
func baked(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("QUORATE_IMAGE")
	if dir == "" || os.Geteuid() != 0 {
		t.Skip("needs root, and a baked image in QUORATE_IMAGE: make image-test")
	}
	if !filepath.IsAbs(dir) {
		t.Fatalf("QUORATE_IMAGE is %q, want an absolute path", dir)
	}
	return dir
}

// machine is what serial says of a machine that boots.
type machine struct {
	serial string
	ended  chan error
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
	wanted, deadline := regexp.MustCompile(pattern), time.Now().Add(bootLimit)
	for !wanted.MatchString(m.console()) {
		select {
		case err := <-m.ended:
			t.Fatalf("the machine ended (%v) without %q:\n%s", err, pattern, m.console())
		case <-time.After(time.Second):
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q after %v:\n%s", pattern, bootLimit, m.console())
		}
	}
}

// boot starts a machine of a 10 GB boot disk and a data disk, in a network of its own where instance's metadata is
// served at GCE's address: qemu shows its own loopback there. It runs until the test ends.
func boot(t *testing.T, instance localgce.Instance, image, data string) *machine {
	t.Helper()
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("qemu is not installed: images/deps.sh guest")
	}
	tools := strings.TrimSpace(run(t, master+"tools.sh"))
	dir := t.TempDir()
	disk, vars := filepath.Join(dir, "disk.raw"), filepath.Join(dir, "vars.fd")
	run(t, "cp", "--sparse=always", filepath.Join(image, "disk.raw"), disk)
	run(t, "cp", filepath.Join(tools, "usr/share/OVMF/OVMF_VARS_4M.fd"), vars)
	if err := os.Truncate(disk, 10<<30); err != nil {
		t.Fatal(err)
	}
	m := &machine{serial: filepath.Join(dir, "serial.log"), ended: make(chan error, 1)}
	cmd := exec.Command(qemu, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048",
		"-display", "none", "-no-reboot", "-serial", "file:"+m.serial,
		"-drive", "if=pflash,format=raw,readonly=on,file="+filepath.Join(tools, "usr/share/OVMF/OVMF_CODE_4M.fd"),
		"-drive", "if=pflash,format=raw,file="+vars,
		"-nic", "user,model=virtio-net-pci,net=169.254.169.0/24,host=169.254.169.254,dhcpstart=169.254.169.15,"+
			"dns=169.254.169.3",
		"-device", "virtio-scsi-pci", "-drive", "if=none,id=boot,format=raw,cache=unsafe,file="+disk,
		"-device", "scsi-hd,drive=boot",
		"-drive", "if=none,id=data,format=raw,cache=unsafe,file="+data,
		"-device", "virtio-blk-pci,drive=data,serial=quorate-data")
	server := &http.Server{Handler: localgce.NewMetadataServer(instance)}
	started := make(chan error, 1)
	go func() {
		// The thread ends with this goroutine, because it is never unlocked: no other gets its network.
		runtime.LockOSThread()
		started <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err
			}
			if err := exec.Command("ip", "link", "set", "lo", "up").Run(); err != nil {
				return err
			}
			listener, err := net.Listen("tcp", "127.0.0.1:80")
			if err != nil {
				return err
			}
			go server.Serve(listener)
			return cmd.Start()
		}()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	go func() { m.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		server.Close()
		if t.Failed() {
			t.Log(m.console())
		}
	})
	return m
}

// The disk boots by UEFI, grows to its size, formats a blank data disk and mounts it, and the agent says on the serial
// console how it is. It finds the metadata and no Cluster document in them, so it goes no further.
func TestABakedDiskBootsToItsAgent(t *testing.T) {
	image := baked(t)
	data := filepath.Join(t.TempDir(), "data.raw")
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(data, 256<<20); err != nil {
		t.Fatal(err)
	}
	instance := localgce.Instance{Name: "master-a", Zone: "local-a", ID: 1,
		Address: netip.MustParseAddr("10.240.0.2")}
	m := boot(t, instance, image, data)
	m.await(t, `resized filesystem to`)
	m.await(t, `Mounted var-lib-quorate\.mount`)
	m.await(t, `quorate\[\d+\]: `)
	if kind := run(t, "blkid", "-p", "-s", "LABEL", "-o", "value", data); strings.TrimSpace(kind) != "quorate-data" {
		t.Errorf("the data disk is labeled %q", kind)
	}
	for line := range strings.Lines(m.console()) {
		if strings.Contains(line, "[FAILED]") && !strings.Contains(line, "chrony-wait") { // here is no NTP server
			t.Errorf("on the console: %s", line)
		}
	}
}
