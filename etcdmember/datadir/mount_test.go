package datadir

import "testing"

func TestMountsAreFoundByTheirPoint(t *testing.T) {
	const mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n36 22 8:16 / /var/lib/quorate rw - ext4 /dev/sdb rw\n37 22 " +
		"8:16 / /mnt/with\\040space rw - ext4 /dev/sdc rw\nshort line\n"
	for dir, want := range map[string]bool{
		"/var/lib/quorate": true, "/var/lib/quorate/": true, "/var/lib": false, "/var/lib/quorate/etcd": false,
		"/mnt/with space": true, "/dev/sdb": false,
	} {
		if MountedAt(mounts, dir) != want {
			t.Errorf("%s is mounted: %t", dir, !want)
		}
	}
}
