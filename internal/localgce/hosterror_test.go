package localgce_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/realtest"
)

// bootID is what a VM's kernel says.
func (w world) bootID(vm string) string {
	return strings.TrimSpace(w.must(vm, "cat /proc/sys/kernel/random/boot_id"))
}

// After a host error there are two boots of one instance: the former one is alone with itself, and what it syncs to its
// disk fails.
func TestAHostErrorWithAFencedDisk(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	w := start(t, config(t.TempDir(), 18, "a", "b"))
	w.awaitReady("a", "b")
	ctx := t.Context()
	w.must("a", "echo shared > "+data+"file; sync "+data+"file")
	before, boot := w.vm("a"), w.bootID("a")
	w.refused("fenced and copy are known", w.HostError(ctx, "a", localgce.HostError{Disk: "burnt"}))
	w.do(w.HostError(ctx, "a", localgce.HostError{}))
	w.awaitReady("a")
	old, next := w.vm("a.1"), w.vm("a")
	for _, v := range []localgce.VMStatus{old, next} {
		if v.InstanceID != before.InstanceID || v.Address != before.Address || v.DiskID != before.DiskID {
			t.Errorf("%+v is not the instance %+v", v, before)
		}
	}
	if w.bootID("a") == boot || next.InitPID == before.InitPID || w.bootID("a.1") != boot ||
		old.InitPID != before.InitPID || !old.Cut {
		t.Errorf("left %+v and made %+v of %+v", old, next, before)
	}
	w.must("a", "echo next >> "+data+"file; sync "+data+"file; grep shared "+data+"file")
	got := w.must("a.1", "(echo former > "+data+"other; sync "+data+"other) 2>&1; cat "+data+"file")
	if !strings.Contains(got, "Input/output error") || !strings.HasSuffix(got, "shared\n") {
		t.Errorf("the former boot writes and reads: %q", got)
	}
	if got := w.must("a", "cat "+data+"file; ls "+data); strings.Contains(got, "other") ||
		!strings.HasPrefix(got, "shared\nnext\n") {
		t.Errorf("the successor's disk: %q", got)
	}
	a, b := "https://"+w.address("a")+"/", "https://"+w.address("b")+"/"
	if w.reaches("a.1", b) || !w.reaches("a", b) || !w.reaches("b", a) {
		t.Error("the address is not the successor's alone")
	}
	w.await("the successor is balanced", func() bool { return strings.Join(w.Status().Backends, " ") == "a b" })
	const id = "/usr/local/bin/tiny tiny get http://169.254.169.254/computeMetadata/v1/instance/id"
	if got := w.must("a.1", id); got != before.InstanceID {
		t.Errorf("the former boot believes to be %s", got)
	}
	w.do(w.Heal(ctx, ""))
	if w.reaches("a.1", b) {
		t.Error("a lost host was healed")
	}
	w.refused("the cloud does not know it", w.HostError(ctx, "a.1", localgce.HostError{}))
	w.do(w.KillVM(ctx, "a.1"))
	w.refused("runs on another host", w.StartVM(ctx, "a.1"))
	w.do(w.DeleteVM(ctx, "a.1", false))
	w.do(w.KillVM(ctx, "a"))
	w.do(w.StartVM(ctx, "a"))
	if got := w.must("a", "cat "+data+"file"); got != "shared\nnext\n" {
		t.Errorf("after the former boot's end, on the successor's disk: %q", got)
	}
}

// Where the disk is not fenced each of the two writes to its own; a second host error leaves a second one behind.
func TestAHostErrorWithACopyOfTheDisk(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	w := start(t, config(t.TempDir(), 19, "a"))
	w.awaitReady("a")
	ctx := t.Context()
	const record = "http://10.243.19.1:8080/storage/v1/b/record/o"
	w.must("a", "echo shared > "+data+"file; sync "+data+"file")
	before := w.vm("a")
	w.do(w.HostError(ctx, "a", localgce.HostError{Disk: "copy"}))
	w.awaitReady("a")
	for _, vm := range []string{"a", "a.1"} {
		w.must(vm, "echo "+vm+" >> "+data+"file; sync "+data+"file")
		if got := w.must(vm, "cat "+data+"file"); got != "shared\n"+vm+"\n" || w.vm(vm).DiskID != before.DiskID {
			t.Errorf("the disk %s of %s: %q", w.vm(vm).DiskID, vm, got)
		}
	}
	if !w.reaches("a", record) || !w.reaches("a.1", record) {
		t.Error("the bucket is not there for both boots")
	}
	w.do(w.SetFault(localgce.Storage, localgce.Fault{Who: "a.1", Kind: "away"}))
	if !w.reaches("a", record) || w.reaches("a.1", record) {
		t.Error("the bucket fails for another boot than the former")
	}
	w.do(w.HostError(ctx, "a", localgce.HostError{Disk: "copy", HideRecord: true}))
	w.awaitReady("a")
	if !w.reaches("a", record) || w.reaches("a.2", record) {
		t.Error("the second former boot reaches the bucket")
	}
	if w.vm("a").InstanceID != before.InstanceID || w.vm("a").Boots != 3 {
		t.Errorf("the third: %+v", w.vm("a"))
	}
}
