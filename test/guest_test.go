package test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// machineFolder is where a VM finds what its machine is made of.
const machineFolder = "/opt/guest"

// machine is a VM with a kernel of its own, and so a clock of its own: qemu emulates it, inside the VM's namespaces and
// in the place of the agent (guest/start). It has the VM's tree, logs, data disk, metadata server and address.
// To the rest of the test it is a VM as any other, but that its data disk cannot be looked into, and that all in it
// takes some ten times as long.
type machine struct {
	vm     string
	offset time.Duration // by which its clock is wrong
	folder string        // on the host; becomes machineFolder
}

// newMachine gathers what the machine needs. It skips where that is not there.
func newMachine(t *testing.T, vm string, offset time.Duration) *machine {
	t.Helper()
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("needs qemu-system-x86_64: run `make guest` as root first")
	}
	made := filepath.Join("..", "bin", "guest")
	if _, err := os.Stat(filepath.Join(made, "vmlinuz")); err != nil {
		t.Skip("needs a kernel in bin/guest: run `make guest` first (it downloads Debian's)")
	}
	m := &machine{vm: vm, offset: offset, folder: t.TempDir()}
	err := share(made, m.folder, "vmlinuz", "initramfs")
	if err == nil {
		err = share("guest", m.folder, "start", "run")
	}
	if err == nil {
		err = os.Symlink("/usr/local/bin/kube-apiserver", filepath.Join(m.folder, "relay"))
	}
	if err == nil {
		settings := fmt.Sprintf("vm=%s\noffset=%+d\n", vm, int(offset.Seconds()))
		err = os.WriteFile(filepath.Join(m.folder, "settings"), []byte(settings), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// relayIfAsked joins the agent's socket inside a machine to the place where the tests look for it, by a TCP connection
// between the two: under the name relay this very program hands on what it accepts, until it is killed.
func relayIfAsked() {
	if filepath.Base(os.Args[0]) != "relay" || len(os.Args) != 5 {
		return
	}
	fmt.Fprintln(os.Stderr, relay(os.Args[1], os.Args[2], os.Args[3], os.Args[4]))
	os.Exit(1)
}

func relay(network, address, toNetwork, to string) error {
	if network == "unix" {
		_ = os.Remove(address) // a former relay's
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			peer, err := net.DialTimeout(toNetwork, to, 5*time.Second)
			if err != nil {
				return
			}
			defer peer.Close()
			go func() {
				_, _ = io.Copy(peer, conn)
				peer.(interface{ CloseWrite() error }).CloseWrite()
			}()
			_, _ = io.Copy(conn, peer)
		}()
	}
}
