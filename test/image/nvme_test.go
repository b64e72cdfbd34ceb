package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A VM of GCE with NVMe disks says their device names where no tool but Google's looks: behind the 384 bytes that the
// NVMe specification gives a namespace's identification.
func TestADiskOnNVMeHasTheNameThatGoogleGivesIt(t *testing.T) {
	for _, c := range []struct{ name, vendor, want string }{
		{"a persistent disk", `{"device_name":"quorate-data","disk_type":"PERSISTENT"}`, "quorate-data\n"},
		{"with spaces", `{ "disk_type" : "PERSISTENT", "device_name" : "quorate-data" }`, "quorate-data\n"},
		{"a name that is none", `{"device_name":"../../sda"}`, ""},
		{"no name", `{"disk_type":"LOCAL_SSD"}`, ""},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			fake := "#!/bin/sh\n[ \"$*\" = 'id-ns -b /dev/nvme0n1' ] || exit 1\nhead -c 384 /dev/zero\nprintf %s '" +
				c.vendor + "'\nhead -c 3000 /dev/zero\n"
			if err := os.WriteFile(filepath.Join(dir, "nvme"), []byte(fake), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(master+"files/master/usr/lib/quorate/nvme-name", "/dev/nvme0n1")
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
			if out, err := cmd.Output(); string(out) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("it prints %q, want %q: %v", out, c.want, err)
			}
		})
	}
}
