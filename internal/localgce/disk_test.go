package localgce_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/realtest"
)

const data = "/var/lib/quorate/"

// refused wants an error that says something.
func (w world) refused(says string, err error) {
	w.t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		w.t.Errorf("not refused with %q: %v", says, err)
	}
}

func TestDisksFillFreezeAndTear(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	conf := config(t.TempDir(), 13, "a")
	conf.Agent.Watchdog = 0
	w := start(t, conf)
	w.awaitReady("a")
	ctx := t.Context()

	w.do(w.FillDisk(ctx, "a", 0))
	if out, err := w.in("a", "dd if=/dev/zero of="+data+"more bs=4k count=1 conv=fsync"); err == nil ||
		!strings.Contains(out, "No space left on device") {
		t.Errorf("a full disk takes a write: %s, %v", out, err)
	}
	w.do(w.FreeDisk(ctx, "a"))
	w.refused("it was not filled", w.FreeDisk(ctx, "a"))
	w.refused("leave 99999999999 bytes: 0 to", w.FillDisk(ctx, "a", 99999999999))
	w.do(w.FillDisk(ctx, "a", 1<<20))
	w.must("a", "head -c 500000 /dev/zero > "+data+"more && sync "+data+"more && rm "+data+"more")
	w.do(w.FreeDisk(ctx, "a"))

	w.refused("1ms to 10m0s are allowed", w.FreezeDisk("a", time.Hour))
	w.do(w.FreezeDisk("a", 300*time.Millisecond))
	w.refused("it is frozen already", w.FreezeDisk("a", time.Second))
	w.refused("it is frozen", w.FillDisk(ctx, "a", 0))
	since := time.Now()
	w.must("a", "echo late > "+data+"late && sync "+data+"late")
	if took := time.Since(since); took < 200*time.Millisecond {
		t.Errorf("a write to a frozen disk took %s", took)
	}
	w.do(w.FreezeDisk("a", time.Minute))
	w.do(w.ThawDisk("a"))
	w.refused("it is not frozen", w.ThawDisk("a"))

	// The power goes while a write waits: it is killed, and its write is lost.
	w.do(w.FreezeDisk("a", time.Minute))
	cmd, err := w.Command(ctx, "a", "sh", "-c", "echo lost > "+data+"lost")
	w.do(err)
	w.do(cmd.Start())
	time.Sleep(50 * time.Millisecond)
	since = time.Now()
	w.do(w.KillVM(ctx, "a"))
	_ = cmd.Wait()
	if took := time.Since(since); took > 5*time.Second {
		t.Errorf("the power cut of a VM with a frozen disk took %s", took)
	}
	w.refused("vm a is TERMINATED", w.FreezeDisk("a", time.Second))
	w.do(w.StartVM(ctx, "a"))
	w.must("a", "test -f "+data+"late && ! test -e "+data+"lost")

	// Torn: what was synced stays, what was not is lost. A kill loses nothing.
	w.must("a", "cd "+data+"; echo one > synced; sync synced .; echo two > unsynced")
	w.do(w.TearDisk(ctx, "a"))
	w.do(w.StartVM(ctx, "a"))
	w.must("a", "cd "+data+"; grep one synced && ! test -s unsynced; echo three > unsynced")
	w.do(w.KillVM(ctx, "a"))
	w.do(w.StartVM(ctx, "a"))
	w.must("a", "grep three "+data+"unsynced")
}

// A disk grows under a VM that runs and under one that is off, and its file system at the next boot. What is on it
// stays.
func TestADiskGrows(t *testing.T) {
	conf := config(t.TempDir(), 11, "a")
	conf.DiskSize = 32 << 20
	w := start(t, conf)
	ctx := t.Context()
	sizes := func() (disk string, kilobytes int) {
		t.Helper()
		disk = strings.TrimSpace(w.must("a", "cat /sys/dev/block/$(mountpoint -d "+data+")/size"))
		kilobytes, err := strconv.Atoi(strings.TrimSpace(w.must("a", "df -k --output=size "+data+" | tail -1")))
		w.do(err)
		return disk, kilobytes
	}
	_, first := sizes()
	w.must("a", "echo kept > "+data+"file; sync "+data+"file")
	w.do(w.GrowDisk(ctx, "a", 128<<20))
	w.refused("a disk only grows, and it has 134217728", w.GrowDisk(ctx, "a", 64<<20))
	if disk, now := sizes(); disk != "262144" || now != first {
		t.Errorf("while it runs: %s sectors, %d kB; before %d kB", disk, now, first)
	}
	w.do(w.TearDisk(ctx, "a")) // there is a journal to be replayed
	w.do(w.StartVM(ctx, "a"))
	disk, second := sizes()
	if disk != "262144" || second < 3*first {
		t.Errorf("after a boot: %s sectors, %d kB; before %d kB", disk, second, first)
	}
	w.do(w.KillVM(ctx, "a"))
	w.do(w.GrowDisk(ctx, "a", 256<<20))
	w.do(w.StartVM(ctx, "a"))
	if disk, now := sizes(); disk != "524288" || now < second*3/2 {
		t.Errorf("while it was off: %s sectors, %d kB; before %d kB", disk, now, second)
	}
	w.must("a", "grep kept "+data+"file")
}

func TestDisksAreSnapshotClonedSwappedEmptied(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	w := start(t, config(t.TempDir(), 14, "a", "b"))
	ctx := t.Context()
	read := func(vm string) string { t.Helper(); return strings.TrimSpace(w.must(vm, "cat "+data+"file")) }
	w.must("a", "echo old > "+data+"file; sync "+data+"file")
	w.do(w.SnapshotDisk("a", "before"))
	w.refused("there is one of that name", w.SnapshotDisk("b", "before"))
	w.must("a", "echo new > "+data+"file; sync "+data+"file")
	w.must("b", "echo b > "+data+"file")
	w.refused("vm a is RUNNING; this needs it to be TERMINATED", w.RestoreDisk("a", "before", false))
	id := w.vm("a").DiskID
	w.do(w.KillVM(ctx, "a"))
	w.refused(`no snapshot is named "after"; there are before`, w.RestoreDisk("a", "after", false))
	w.do(w.RestoreDisk("a", "before", true))
	w.do(w.StartVM(ctx, "a"))
	if read("a") != "old" || w.vm("a").DiskID != id {
		t.Errorf("rolled back in place: %q, disk %s, was %s", read("a"), w.vm("a").DiskID, id)
	}
	w.do(w.KillVM(ctx, "a"))
	w.do(w.RestoreDisk("a", "before", false))
	if w.vm("a").DiskID == id {
		t.Error("a disk made of a snapshot has its source's id")
	}

	// b gets what is on a's disk; then both go on by themselves.
	w.refused("vm b is RUNNING", w.CloneDisk("a", "b"))
	w.do(w.KillVM(ctx, "b"))
	w.do(w.StartVM(ctx, "a"))
	w.must("a", "echo shared > "+data+"file; sync "+data+"file")
	w.do(w.CloneDisk("a", "b")) // of a disk that is in use
	w.do(w.StartVM(ctx, "b"))
	w.must("a", "echo again > "+data+"file")
	if read("b") != "shared" || w.vm("a").DiskID == w.vm("b").DiskID {
		t.Errorf("the clone holds %q", read("b"))
	}

	w.refused("vm a is named twice", w.SwapDisks("a", "a"))
	w.do(w.KillVM(ctx, "a"))
	w.refused("vm b is RUNNING", w.SwapDisks("a", "b"))
	w.do(w.KillVM(ctx, "b"))
	a, b := w.vm("a").DiskID, w.vm("b").DiskID
	w.do(w.SwapDisks("a", "b"))
	w.do(w.StartVM(ctx, "a"))
	if read("a") != "shared" || w.vm("a").DiskID != b || w.vm("b").DiskID != a {
		t.Errorf("swapped: %q, %+v", read("a"), w.Status().VMs)
	}
	w.do(w.KillVM(ctx, "a"))
	w.do(w.EmptyDisk("a"))
	w.do(w.StartVM(ctx, "a"))
	if got := w.must("a", "ls -A "+data); !strings.HasPrefix(got, "lost+found\n") || w.vm("a").DiskID != b {
		t.Errorf("emptied in place: %q", got)
	}
	w.do(w.DeleteSnapshot("before"))
	if files, _ := filepath.Glob(filepath.Join(w.conf.State, "disks", "*")); len(files) != 2 {
		t.Errorf("files that no disk has: %q", files)
	}
}

func TestFilesAreCorrupted(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	w := start(t, config(t.TempDir(), 15, "a"))
	ctx := t.Context()
	w.must("a", "mkdir "+data+"wal; cd "+data+"wal; printf aaaa > 1.wal; printf aaaa > 2.wal; sync .")
	flip := func(offset int64, bits int) {
		t.Helper()
		path, err := w.CorruptDisk(ctx, "a", localgce.Corruption{Path: "wal/*.wal", Offset: offset, Bits: bits})
		if err != nil || filepath.Base(path) != "2.wal" {
			t.Errorf("%q, %v", path, err)
		}
	}
	flip(0, 1)
	w.do(w.KillVM(ctx, "a"))
	flip(-1, 2)
	_, err := w.TruncateDisk(ctx, "a", "wal/1.wal", -1)
	w.do(err)
	for says, c := range map[string]localgce.Corruption{
		"no file of the disk fits":   {Path: "wal/3.wal"},
		"must be relative":           {Path: "../../etc/passwd"},
		"8 bits at 4: the file has":  {Path: "wal/2.wal", Offset: 4, Bits: 8},
		"1 bits at -5: the file has": {Path: "wal/2.wal", Offset: -5},
	} {
		_, err := w.CorruptDisk(ctx, "a", c)
		w.refused(says, err)
	}
	w.do(w.StartVM(ctx, "a"))
	if got := w.must("a", "cd "+data+"wal; cat 1.wal; echo; cat 2.wal"); got != "aaa\n`aab" {
		t.Errorf("corrupted to %q", got)
	}
}

func TestVMsComeAndGo(t *testing.T) {
	t.Parallel()
	w := start(t, config(t.TempDir(), 16, "a", "b"))
	w.awaitReady("a", "b")
	ctx := t.Context()
	w.must("b", "echo kept > "+data+"file")
	disk, other := w.vm("b").DiskID, w.vm("a").DiskID
	w.do(w.DeleteVM(ctx, "b", false))
	w.refused(`no vm is named "b"`, w.StartVM(ctx, "b"))
	listed := func() []string { return w.diskIDs("a") }
	if ids := listed(); !slices.Contains(ids, disk) || !slices.Contains(ids, other) {
		t.Errorf("the disk of a deleted VM is not listed: %q lack %s or %s", ids, disk, other)
	}
	c := localgce.VMConfig{Name: "c", Zone: "us-central1-b"}
	w.refused("there is no disk", w.CreateVM(ctx, localgce.VMConfig{Name: "c", Zone: "us-central1-c"}, "b-data"))
	w.refused("there is one of that name", w.CreateVM(ctx, localgce.VMConfig{Name: "a", Zone: "us-central1-c"}, ""))
	w.refused("disk b-data exists", w.CreateVM(ctx, localgce.VMConfig{Name: "b", Zone: "us-central1-b"}, ""))
	w.refused("belongs to a", w.CreateVM(ctx, localgce.VMConfig{Name: "d", Zone: "us-central1-b",
		Address: netip.MustParseAddr(w.address("a"))}, ""))
	w.do(w.CreateVM(ctx, c, "b-data"))
	w.awaitReady("c")
	w.must("c", "grep kept "+data+"file")
	if w.vm("c").DiskID != disk || !w.reaches("a", "https://"+w.address("c")+"/") {
		t.Errorf("the new VM: %+v", w.vm("c"))
	}
	w.await("c is balanced", func() bool { return strings.Join(w.Status().Backends, " ") == "a c" })
	w.do(w.DeleteVM(ctx, "c", true))
	if ids := listed(); slices.Contains(ids, disk) {
		t.Error("a deleted disk is listed")
	}
	before := w.vm("a")
	w.do(w.RecreateVM(ctx, "a", localgce.Recreation{NewAddress: true}))
	if after := w.vm("a"); after.Address == before.Address || after.DiskID != before.DiskID ||
		after.InstanceID == before.InstanceID {
		t.Errorf("recreated with a new address: %+v, was %+v", after, before)
	}
	// What was created is found again, if it is asked for.
	w.do(w.CreateVM(ctx, localgce.VMConfig{Name: "d", Zone: "us-central1-d"}, ""))
	id := w.vm("d").InstanceID
	w.do(w.Close(context.Background()))
	conf := w.conf
	conf.VMs = append(conf.VMs[:1:1], localgce.VMConfig{Name: "d", Zone: "us-central1-d"})
	if w = start(t, conf); w.vm("d").InstanceID != id {
		t.Error("the created VM is another after the project was down")
	}
}

func TestAnOldVMIsLeftRunning(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	w := start(t, config(t.TempDir(), 17, "a", "b"))
	w.awaitReady("a", "b")
	ctx := t.Context()
	w.must("a", "echo shared > "+data+"file; sync "+data+"file")
	before := w.vm("a")
	w.refused("a new address is needed", w.RecreateVM(ctx, "a", localgce.Recreation{LeaveRunning: true}))
	w.do(w.Partition(ctx, "a", "b", false))
	w.do(w.RecreateVM(ctx, "a", localgce.Recreation{LeaveRunning: true, NewAddress: true}))
	w.awaitReady("a")
	old, next := w.vm("a.1"), w.vm("a")
	if old.InstanceID != before.InstanceID || old.Address != before.Address || next.InstanceID == before.InstanceID ||
		next.Address == before.Address || next.DiskID != before.DiskID {
		t.Errorf("left %+v and made %+v of %+v", old, next, before)
	}
	for vm, id := range map[string]string{"a": next.InstanceID, "a.1": old.InstanceID} {
		if got := w.must(vm,
			"/usr/local/bin/tiny tiny get http://169.254.169.254/computeMetadata/v1/instance/id"); got != id ||
			strings.TrimSpace(w.must(vm, "hostname")) != "a" {
			t.Errorf("%s believes to be %s", vm, got)
		}
		w.must(vm, "echo "+vm+" >> "+data+"file; grep shared "+data+"file")
	}
	if got := w.must("a", "cat "+data+"file"); got != "shared\na\n" {
		t.Errorf("the successor's disk: %q", got)
	}
	if w.reaches("a.1", "https://"+w.address("b")+"/") || !w.reaches("a", "https://"+w.address("b")+"/") {
		t.Error("the successor has its predecessor's partition")
	}
	w.await("the successor is balanced", func() bool { return strings.Join(w.Status().Backends, " ") == "a b" })
	for _, vm := range []string{"a", "a.1"} {
		if b, err := os.ReadFile(w.vm(vm).Log); err != nil ||
			strings.Count(string(b), "the tiny agent is ready\n") != 1 {
			t.Errorf("the log of %s: %s, %v", vm, b, err)
		}
	}
	w.refused("the cloud does not know it", w.RecreateVM(ctx, "a.1", localgce.Recreation{}))
	w.do(w.DeleteVM(ctx, "a.1", false))
	w.must("a", "true")
}

// diskIDs are the ids of all disks that the Compute API lists.
func (w world) diskIDs(vm string) (ids []string) {
	w.t.Helper()
	api := w.Status().ComputeEndpoint + "projects/quorate-local/aggregated/disks"
	var list struct {
		Items map[string]struct{ Disks []struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(w.must(vm, "/usr/local/bin/tiny tiny get "+api)), &list); err != nil {
		w.t.Fatal(err)
	}
	for _, zone := range list.Items {
		for _, d := range zone.Disks {
			ids = append(ids, d.ID)
		}
	}
	return ids
}
