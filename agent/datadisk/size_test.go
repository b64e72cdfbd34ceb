package datadisk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// The disk's size is measured with its room, and who asks waits for nothing.
func TestTheSizeOfTheDataDisk(t *testing.T) {
	d, dir := diskIn(t)
	d.places.devices = kernel.devices
	if s := d.Size(); s != nil {
		t.Errorf("before it was measured: %+v", s)
	}
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		go func() { d.WatchRoom(t.Context(), dir); close(done) }()
		time.Sleep(roomPeriod / 2)
		s := d.Size()
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		if s == nil || s.FileSystem != int64(st.Blocks)*st.Bsize || s.Free <= 0 || s.Device != 0 && s.NotGrown() {
			t.Errorf("%+v", s)
		}
	})
}

// A disk that is enlarged under a file system shows both sizes; one that has grown to it needs a little for itself.
func TestADiskThatIsLargerThanItsFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a loop device")
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	dir := t.TempDir()
	image, mounted := filepath.Join(dir, "disk"), filepath.Join(dir, "mounted")
	const small, large = 1 << 30, 2 << 30
	for _, err := range []error{os.Mkdir(mounted, 0o700), os.WriteFile(image, nil, 0o600), os.Truncate(image, small)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	run("mkfs.ext4", "-q", image)
	out, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		t.Skipf("this machine gives no loop device: %v", err)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() { run("losetup", "-d", device) })
	run("mount", device, mounted)
	t.Cleanup(func() { run("umount", mounted) })
	measured := func() Size {
		t.Helper()
		d, _ := diskIn(t)
		d.places.devices = kernel.devices
		synctest.Test(t, func(t *testing.T) {
			go d.WatchRoom(t.Context(), mounted)
			synctest.Wait()
		})
		return *d.Size()
	}
	if s := measured(); s.Device != small || s.NotGrown() {
		t.Errorf("as it was made: %+v", s)
	}
	if err := os.Truncate(image, large); err != nil {
		t.Fatal(err)
	}
	run("losetup", "--set-capacity", device)
	if s := measured(); s.Device != large || !s.NotGrown() {
		t.Errorf("a larger disk: %+v", s)
	}
	run("umount", mounted) // to resize a mounted one takes CAP_SYS_RESOURCE, which containers lack
	run("e2fsck", "-fp", device)
	run("resize2fs", device)
	run("mount", device, mounted)
	if s := measured(); s.Device != large || s.NotGrown() || s.FileSystem <= small {
		t.Errorf("a larger file system: %+v", s)
	}
}
