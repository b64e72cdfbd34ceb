package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

func TestJudgeDisk(t *testing.T) {
	t.Parallel()
	const device, dir = "/dev/disk/by-id/google-data", "/var/lib/quorate"
	broken := errors.New("input/output error")
	for _, tc := range []struct {
		name, want, says string
		seen             seenDisk
	}{
		{"mounted, readable and writable", "", "", seenDisk{attached: true, mounted: true}},
		{"mounted, and its name has not appeared yet", "", "", seenDisk{mounted: true}},
		{"not attached", dataDiskMissing, "no disk is attached as " + device, seenDisk{}},
		{"attached, and not mounted", dataDiskDamaged, "is attached, and is not mounted at " + dir,
			seenDisk{attached: true}},
		{"attached, and each read fails", dataDiskDamaged, device + " cannot be read: input/output error",
			seenDisk{attached: true, readErr: broken}},
		{"mounted read-only", dataDiskDamaged, "mounted read-only at " + dir, seenDisk{mounted: true, readOnly: true}},
		{"mounted, and its top folder is unreadable", dataDiskDamaged, dir + " cannot be read: input/output error",
			seenDisk{mounted: true, dirErr: broken}},
	} {
		tc.seen.device, tc.seen.dir = device, dir
		var got replica.Wait
		if w := judgeDisk(tc.seen); w != nil {
			got = *w
		}
		if got.Name != tc.want || (got.Name != "") != (got.Next != "") || !strings.Contains(got.Reason, tc.says) {
			t.Errorf("%s: got %+v, want %q: %s", tc.name, got, tc.want, tc.says)
		}
		if got.Name == dataDiskDamaged && !strings.Contains(got.Next, "fsck -f "+device) {
			t.Errorf("%s: nobody is told how to repair it: %s", tc.name, got.Next)
		}
	}
}

// Until its disk is mounted an agent touches nothing where it has to be, says what it waits for, and then goes on.
func TestADataDiskThatIsNotMountedIsAWait(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	v.metadata.attributes[ClusterAttribute] = strings.Replace(v.document, "etcd: {", "etcd: {dataDisk: data, ", 1)
	a := v.agent()
	a.disks = diskPlaces{byID: filepath.Join(v.dir, "by-id"), mountinfo: filepath.Join(v.dir, "mountinfo")}
	in, err := a.identify(t.Context(), nothing{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := a.awaitDisk(t.Context(), in)
		ended <- err
	}()
	waits := func(name string) func() bool {
		return func() bool {
			all := a.tracker.All()
			return len(all) == 1 && all[0].Name == name
		}
	}
	eventually(t, "the wait for a disk that is missing", waits(dataDiskMissing))
	if err := os.MkdirAll(a.disks.byID, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.disks.byID, "google-data"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the wait for a disk that is not mounted", waits(dataDiskDamaged))
	if _, err := os.Stat(v.data()); err == nil {
		t.Error("something was made beneath the mount point")
	}
	if err := os.Mkdir(v.data(), 0o700); err != nil { // what mounting brings
		t.Fatal(err)
	}
	line := "36 35 8:16 / " + v.data() + " rw - ext4 /dev/sdb rw\n"
	if err := os.WriteFile(a.disks.mountinfo, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil || len(a.tracker.All()) != 0 {
			t.Errorf("got %v, waits %v; want to go on without a wait", err, a.tracker.All())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not go on when the disk is mounted")
	}
}

func TestTheWaitForADataDiskEndsWithTheAgent(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	v.metadata.attributes[ClusterAttribute] = strings.Replace(v.document, "etcd: {", "etcd: {dataDisk: data, ", 1)
	a := v.agent()
	a.disks = diskPlaces{byID: v.dir, mountinfo: filepath.Join(v.dir, "mountinfo")}
	in, err := a.identify(t.Context(), nothing{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := a.awaitDisk(ctx, in); err == nil || !strings.Contains(err.Error(), "no disk is attached") {
		t.Errorf("got %v, want an error that says what was waited for", err)
	}
}
