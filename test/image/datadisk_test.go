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
		{"a file system stays", func(t *testing.T, path string) { run(t, "mkfs.ext4", "-q", path) }, false, false},
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
