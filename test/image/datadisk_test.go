package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const diskSize = 32 << 20

// partitions is the table of a disk's first sector, from its byte 446: one partition, and the mark of a table.
var partitions = append([]byte{0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0},
	append(make([]byte, 48), 0x55, 0xaa)...)

var foreign = []byte("somebody's data")

// loop attaches a disk of 32 MiB that prepare may have written to, and says its device.
func loop(t *testing.T, prepare func(path string)) (path, device string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, diskSize); err != nil {
		t.Fatal(err)
	}
	prepare(path)
	out, err := exec.Command("losetup", "--find", "--show", path).Output()
	if err != nil {
		t.Skipf("this machine gives no loop device: %v", err)
	}
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", device).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return path, device
}

// run runs a program that must succeed.
func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// put writes at a place of the disk.
func put(t *testing.T, path string, at int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
}

// Only a disk of zeros is formatted. All else is a mount's to judge, or a person's.
func TestTheDataDiskIsFormattedOnlyIfBlank(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a loop device")
	}
	for _, c := range []struct {
		name            string
		prepare         func(t *testing.T, path string)
		refused, format bool
	}{
		{"a blank disk gets a file system", func(*testing.T, string) {}, false, true},
		{"a file system stays", func(t *testing.T, path string) { run(t, "mkfs.ext4", "-q", "-e", "remount-ro", path) },
			false, false},
		{"swap stays", func(t *testing.T, path string) { run(t, "mkswap", "-q", path) }, true, false},
		{"a partition table stays", func(t *testing.T, path string) { put(t, path, 446, partitions) }, true, false},
		{"data at the beginning without a signature",
			func(t *testing.T, path string) { put(t, path, 0, foreign) }, true, false},
		{"data in the third MiB without a signature",
			func(t *testing.T, path string) { put(t, path, 3<<20, foreign) }, true, false},
		{"data at the end without a signature",
			func(t *testing.T, path string) { put(t, path, diskSize-512, foreign) }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, device := loop(t, func(path string) { c.prepare(t, path) })
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(master+"files/master/usr/lib/quorate/data-disk", device).CombinedOutput()
			if (err != nil) != c.refused {
				t.Fatalf("%v: %s", err, out)
			}
			if c.refused && !strings.Contains(string(out), "not formatted") {
				t.Errorf("it says %q", out)
			}
			run(t, "blockdev", "--flushbufs", device)
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if same := bytes.Equal(before, after); same == c.format {
				t.Errorf("formatted: %v, want %v", !same, c.format)
			}
			if c.format {
				if says := run(t, "tune2fs", "-l", device); !strings.Contains(says, "Remount read-only") {
					t.Errorf("where it finds errors it does not stop writing: %s", says)
				}
				run(t, master+"files/master/usr/lib/quorate/data-disk", device)
			}
		})
	}
}

const dataDisk = master + "files/master/usr/lib/quorate/data-disk"

// An upgraded master keeps its disk, which an older image has formatted.
func TestAnOlderDataDiskStopsAtErrorsToo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a loop device")
	}
	const uuid = "7d2b1c1e-7f0a-4f55-9d4a-6b1c4a7e0b02"
	_, device := loop(t, func(path string) { run(t, "mkfs.ext4", "-q", "-U", uuid, "-e", "continue", path) })
	run(t, dataDisk, device)
	says := run(t, "tune2fs", "-l", device)
	if !strings.Contains(says, "Remount read-only") || !strings.Contains(says, uuid) {
		t.Errorf("want the same file system, which remounts read-only at errors: %s", says)
	}
}

// A loop device gives EIO behind the end of its file.
func TestADataDiskThatCannotBeReadIsNotCalledForeign(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a loop device")
	}
	for _, readable := range []int64{0, diskSize / 2} {
		path, device := loop(t, func(string) {})
		if err := os.Truncate(path, readable); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(dataDisk, device).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "cannot be read") || strings.Contains(string(out), "blkdiscard") {
			t.Errorf("of which %d bytes can be read: %v: %s", readable, err, out)
		}
	}
}

// The power goes when mke2fs has written all but the signature.
func TestAnInterruptedFormatIsBegunAgain(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a loop device")
	}
	path, device := loop(t, func(string) {})
	programs := t.TempDir()
	const cut = `#!/bin/sh
/sbin/mkfs.ext4 "$@"
for device; do :; done
dd if=/dev/zero of="$device" bs=1024 seek=1 count=1 conv=notrunc,fsync 2>/dev/null
kill -9 $PPID
`
	if err := os.WriteFile(filepath.Join(programs, "mkfs.ext4"), []byte(cut), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dataDisk, device)
	cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("it was not interrupted: %s", out)
	}
	if out, err := exec.Command("blkid", "-p", device).CombinedOutput(); err == nil {
		t.Fatalf("the disk has a signature already: %s", out)
	}
	run(t, dataDisk, device)
	if says := run(t, "blkid", "-p", device); !strings.Contains(says, `LABEL="quorate-data"`) {
		t.Errorf("the second boot makes %s", says)
	}
	// What loses its signature later is somebody's data.
	run(t, "wipefs", "-q", "-a", device)
	run(t, "blockdev", "--flushbufs", device)
	if out, err := exec.Command(dataDisk, device).CombinedOutput(); err == nil {
		t.Errorf("a file system that lost its signature is formatted: %s", out)
	}
	if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("mkfs.ext4 runs")) {
		t.Errorf("the mark is still there, %v", err)
	}
}
