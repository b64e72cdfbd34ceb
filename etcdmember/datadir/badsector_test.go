package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/etcdmember/etcdtest"
)

// The disk cannot be read from some page of the database on: a file system on a loop device, whose image has become
// shorter. That is an error of the kernel below the page cache, in read(2) and in a mapping alike, and no damage.
func TestABadSectorIsNoDamage(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	path := etcdtest.Database(t, false)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	leaves := etcdtest.Pages(t, path, "leaf")
	for name, page := range map[string]int{"the head": 0, "the second meta page": 1, "a leaf": leaves[len(leaves)/2]} {
		t.Run(name, func(t *testing.T) {
			d := newLoopDisk(t)
			d.mount()
			path := filepath.Join(d.dir, "db")
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			d.unmount() // so that nothing of it is in memory
			d.shortenTo(whole[page*os.Getpagesize():][:os.Getpagesize()])
			err := CheckPages(t.Context(), path)
			if damaged := (*damagedPage)(nil); !errors.Is(err, syscall.EIO) || errors.As(err, &damaged) {
				t.Errorf("%v", err)
			}
		})
	}
}

// inOwnMounts runs the test again in a mount namespace, and reports whether this is already that run: a mount, and with
// it the loop device, is gone with the namespace, however the test ends.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	const env = "QUORATE_TEST_MOUNTS"
	if os.Getenv(env) != "" {
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts a disk")
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("needs mkfs.ext4")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), env+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
	if bytes.Contains(out, []byte("--- SKIP: "+t.Name())) {
		t.SkipNow()
	}
	return false
}

// loopDisk is a file system on a loop device.
type loopDisk struct {
	t          *testing.T
	image, dir string
	mounted    bool
}

func newLoopDisk(t *testing.T) *loopDisk {
	t.Helper()
	d := &loopDisk{t: t, image: filepath.Join(t.TempDir(), "image"), dir: t.TempDir()}
	// Without a journal, which could lie behind what is cut off.
	out, err := exec.Command("mkfs.ext4", "-q", "-O", "^has_journal", "-b", fmt.Sprint(os.Getpagesize()), d.image,
		"32M").CombinedOutput()
	if err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	t.Cleanup(d.unmount)
	return d
}

// mount mounts it. The kernel frees the loop device when that ends.
func (d *loopDisk) mount() {
	d.t.Helper()
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.dir).CombinedOutput(); err != nil {
		d.t.Skipf("a loop device cannot be mounted here: %v: %s", err, out)
	}
	d.mounted = true
}

func (d *loopDisk) unmount() {
	d.t.Helper()
	if !d.mounted {
		return
	}
	d.mounted = false
	err := unix.Unmount(d.dir, 0)
	for range 100 { // a child between fork and exec holds copies of open files
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(10 * time.Millisecond)
		err = unix.Unmount(d.dir, 0)
	}
	if err != nil {
		d.t.Errorf("unmount: %v", err)
	}
}

// shortenTo mounts it, and then cuts the image off where it has this page.
func (d *loopDisk) shortenTo(page []byte) {
	d.t.Helper()
	image, err := os.ReadFile(d.image)
	if err != nil {
		d.t.Fatal(err)
	}
	at := bytes.Index(image, page)
	if at < 0 {
		d.t.Fatal("the page is not on the disk")
	}
	d.mount()
	if err := os.Truncate(d.image, int64(at)); err != nil {
		d.t.Fatal(err)
	}
}
