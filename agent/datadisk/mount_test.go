package datadisk

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

// Until its disk is mounted nothing touches the place where it has to be, it is said what is waited for, and then it
// goes on.
func TestADataDiskThatIsNotMountedIsAWait(t *testing.T) {
	t.Parallel()
	d, dir := diskIn(t)
	data := filepath.Join(dir, "data")
	d.places = places{byID: filepath.Join(dir, "by-id"), mountinfo: filepath.Join(dir, "mountinfo")}
	ended := make(chan error, 1)
	go func() { ended <- d.AwaitMount(t.Context(), "data", data) }()
	waits := func(name string) func() bool {
		return func() bool {
			all := d.tracker.All()
			return len(all) == 1 && all[0].Name == name
		}
	}
	eventually(t, "the wait for a disk that is missing", waits(dataDiskMissing))
	if err := os.MkdirAll(d.places.byID, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.places.byID, "google-data"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no wait while the disk may be formatted", func() bool { return len(d.tracker.All()) == 0 })
	if _, err := os.Stat(data); err == nil {
		t.Error("something was made beneath the mount point")
	}
	if err := os.Mkdir(data, 0o700); err != nil { // what mounting brings
		t.Fatal(err)
	}
	line := "36 35 8:16 / " + data + " rw - ext4 /dev/sdb rw\n"
	if err := os.WriteFile(d.places.mountinfo, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil || len(d.tracker.All()) != 0 {
			t.Errorf("got %v, waits %v; want to go on without a wait", err, d.tracker.All())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not go on when the disk is mounted")
	}
}

func TestADiskThatIsNotMountedIsToldOnceItHadTimeToBeFormatted(t *testing.T) {
	d, dir := diskIn(t)
	if err := os.WriteFile(filepath.Join(dir, "google-data"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.AwaitMount(ctx, "data", filepath.Join(dir, "data")) }()
		time.Sleep(settles - mountPeriod)
		if all := d.tracker.All(); len(all) > 0 {
			t.Errorf("told while a blank disk may be formatted: %+v", all)
		}
		time.Sleep(2 * mountPeriod)
		all := d.tracker.All()
		if len(all) != 1 || all[0].Name != dataDiskDamaged ||
			!strings.Contains(all[0].Next, "`systemctl start data.mount`") {
			t.Errorf("waits %+v, want %s, and to start the image's unit", all, dataDiskDamaged)
		}
		stop()
		if err := <-ended; err == nil || len(d.tracker.All()) > 0 {
			t.Errorf("at the end: %v, waits %+v", err, d.tracker.All())
		}
	})
}

// A fifo whose writer does not come stands for a disk that stands still: who opens it does not return.
func TestADiskThatHangsIsAWaitAndIsNotAskedTwice(t *testing.T) {
	t.Parallel()
	d, dir := diskIn(t)
	device := filepath.Join(dir, "google-data")
	if err := unix.Mkfifo(device, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.AwaitMount(ctx, "data", filepath.Join(dir, "data")) }()
	time.Sleep(hangs)
	eventually(t, "the wait for a disk that hangs", func() bool {
		all := d.tracker.All()
		return len(all) == 1 && all[0].Name == dataDiskHangs
	})
	time.Sleep(3 * mountPeriod)
	writer, err := os.OpenFile(device, os.O_WRONLY, 0) // it answers, and has nothing
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(device); err != nil { // who asked a second time hangs on
		t.Fatal(err)
	}
	writer.Close()
	eventually(t, "the wait after it", func() bool {
		all := d.tracker.All()
		return len(all) == 1 && all[0].Name == dataDiskMissing
	})
	stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "no disk is attached") {
		t.Errorf("got %v, want an error that says what was waited for", err)
	}
}

func TestAnAgentEndsWhileItsDiskHangs(t *testing.T) {
	t.Parallel()
	d, dir := diskIn(t)
	device := filepath.Join(dir, "google-data")
	if err := unix.Mkfifo(device, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.AwaitMount(ctx, "data", filepath.Join(dir, "data")) }()
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
	d, dir := diskIn(t)
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	err := d.AwaitMount(ctx, "data", filepath.Join(dir, "data"))
	if err == nil || !strings.Contains(err.Error(), "no disk is attached") {
		t.Errorf("got %v, want an error that says what was waited for", err)
	}
}
