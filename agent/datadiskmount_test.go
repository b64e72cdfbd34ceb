package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

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
		if got.Name == dataDiskDamaged && (!strings.Contains(got.Next, "fsck -f "+device) ||
			!strings.Contains(got.Next, "`mount -o nodev,nosuid,noexec "+device+" "+dir+"`")) {
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
	eventually(t, "no wait while the disk may be formatted", func() bool { return len(a.tracker.All()) == 0 })
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

func TestADocumentWithoutADataDiskNeedsTheImages(t *testing.T) {
	t.Parallel()
	image := ImageDisk{Device: "quorate-data", Dir: "/var/lib/quorate"}
	for _, tc := range []struct {
		name, etcd string
		disk       ImageDisk
		want       string
	}{
		{"silent", "{}", image, "quorate-data"},
		{"the same folder, and no disk", "{dataDir: /var/lib/quorate}", image, "quorate-data"},
		{"another disk", "{dataDisk: master-pd}", image, "master-pd"},
		{"another folder", "{dataDir: /mnt/ssd}", image, ""},
		{"an image that mounts none", "{}", ImageDisk{}, ""},
		{"an image that mounts none, and a disk", "{dataDisk: master-pd}", ImageDisk{}, "master-pd"},
	} {
		v := newVM(t)
		document := strings.Replace(v.document, "etcd: {dataDir: "+v.data()+"}", "etcd: "+tc.etcd, 1)
		c, err := loadCluster("", document, tc.disk)
		if err != nil || c.Etcd.DataDisk != tc.want {
			t.Errorf("%s: got %v, want the disk %q (%v)", tc.name, c, tc.want, err)
		}
	}
	_, err := loadCluster("", strings.Replace(newVM(t).document, "dataDir", "#", 1)+"}\n",
		ImageDisk{Device: "../sda", Dir: "/var/lib/quorate"})
	if err == nil || !strings.Contains(err.Error(), "the data disk that the image names") ||
		!strings.Contains(err.Error(), "../sda") {
		t.Errorf("got %v, want an error that says whose fault it is", err)
	}
}

// A mount that failed must not leave etcd on the boot disk, also where the document names no disk.
func TestASilentDocumentWaitsForTheImagesDataDisk(t *testing.T) {
	t.Parallel()
	a, v := diskAgent(t)
	cfg := a.cfg
	in, err := a.identify(t.Context(), nothing{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := a.awaitDisk(ctx, in)
		ended <- err
	}()
	eventually(t, "the wait for the image's disk", func() bool {
		all := a.tracker.All()
		return len(all) == 1 && all[0].Name == dataDiskMissing
	})
	stop()
	if err := <-ended; err == nil {
		t.Error("it went on without the disk")
	}
	if _, err := os.Stat(v.data()); err == nil {
		t.Error("something was made beneath the mount point")
	}
	if _, c, _, ok, err := Remembered(cfg.RunDir, cfg.Baked); err != nil || !ok || c.Etcd.DataDisk != "data" {
		t.Errorf("a command on this VM has the document %v (%v), want the image's disk in it", c, err)
	}
}

// diskAgent is an agent whose document needs the disk data, as the image mounts it, and that knows no other place.
func diskAgent(t *testing.T) (*Agent, *vm) {
	t.Helper()
	v := newVM(t)
	cfg := v.config()
	if err := os.MkdirAll(cfg.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.ImageDisk = ImageDisk{Device: "data", Dir: v.data(), Unit: "data.mount"}
	a := newAgent(cfg, nil)
	a.disks = diskPlaces{byID: v.dir, mountinfo: filepath.Join(v.dir, "mountinfo")}
	return a, v
}

func TestADiskThatIsNotMountedIsToldOnceItHadTimeToBeFormatted(t *testing.T) {
	a, v := diskAgent(t)
	if err := os.WriteFile(filepath.Join(v.dir, "google-data"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.awaitMount(ctx, "data", v.data()) }()
		time.Sleep(diskSettles - diskPeriod)
		if all := a.tracker.All(); len(all) > 0 {
			t.Errorf("told while a blank disk may be formatted: %+v", all)
		}
		time.Sleep(2 * diskPeriod)
		all := a.tracker.All()
		if len(all) != 1 || all[0].Name != dataDiskDamaged ||
			!strings.Contains(all[0].Next, "`systemctl start data.mount`") {
			t.Errorf("waits %+v, want %s, and to start the image's unit", all, dataDiskDamaged)
		}
		stop()
		if err := <-ended; err == nil || len(a.tracker.All()) > 0 {
			t.Errorf("at the end: %v, waits %+v", err, a.tracker.All())
		}
	})
}

// A fifo whose writer does not come stands for a disk that stands still: who opens it does not return.
func TestADiskThatHangsIsAWaitAndIsNotAskedTwice(t *testing.T) {
	t.Parallel()
	a, v := diskAgent(t)
	device := filepath.Join(v.dir, "google-data")
	if err := unix.Mkfifo(device, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.awaitMount(ctx, "data", v.data()) }()
	hangs := func() bool {
		all := a.tracker.All()
		return len(all) == 1 && all[0].Name == dataDiskHangs
	}
	time.Sleep(diskHangs)
	eventually(t, "the wait for a disk that hangs", hangs)
	time.Sleep(3 * diskPeriod)
	writer, err := os.OpenFile(device, os.O_WRONLY, 0) // it answers, and has nothing
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(device); err != nil { // who asked a second time hangs on
		t.Fatal(err)
	}
	writer.Close()
	eventually(t, "the wait after it", func() bool {
		all := a.tracker.All()
		return len(all) == 1 && all[0].Name == dataDiskMissing
	})
	stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "no disk is attached") {
		t.Errorf("got %v, want an error that says what was waited for", err)
	}
}

func TestAnAgentEndsWhileItsDiskHangs(t *testing.T) {
	t.Parallel()
	a, v := diskAgent(t)
	device := filepath.Join(v.dir, "google-data")
	if err := unix.Mkfifo(device, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.awaitMount(ctx, "data", v.data()) }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it went on")
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not end")
	}
	if writer, err := os.OpenFile(device, os.O_WRONLY, 0); err == nil { // what hangs ends with the test
		writer.Close()
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
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := a.awaitDisk(ctx, in); err == nil || !strings.Contains(err.Error(), "no disk is attached") {
		t.Errorf("got %v, want an error that says what was waited for", err)
	}
}
