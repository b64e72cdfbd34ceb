package localgce_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/realtest"
)

func TestNameServersAreSilent(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	w := start(t, config(t.TempDir(), 27, "a", "b"))
	ctx := t.Context()
	w.refused(`name server fault "dull": silent or none are known`, w.SetNameServerFault(ctx, "a", "dull"))
	w.refused("no vm is named", w.SetNameServerFault(ctx, "c", localgce.NameServerSilent))
	look := func(when, vm, want string) {
		t.Helper()
		if got := w.must(vm, "timeout 2 getent hosts nowhere.example; echo $?"); strings.TrimSpace(got) != want {
			t.Errorf("%s, %s: a lookup ends with %q, want %s", when, vm, got, want)
		}
	}
	const refused, silent = "2", "124"
	look("at first", "a", refused)
	w.do(w.SetNameServerFault(ctx, "a", localgce.NameServerSilent))
	w.do(w.SetNameServerFault(ctx, "a", localgce.NameServerSilent))
	look("silent", "a", silent)
	look("another's is silent", "b", refused)
	w.awaitReady("a") // its metadata server answers
	w.do(w.KillVM(ctx, "a"))
	w.do(w.StartVM(ctx, "a"))
	look("after a boot", "a", silent)
	w.do(w.SetNameServerFault(ctx, "a", ""))
	look("healed", "a", refused)
	w.do(w.KillVM(ctx, "b"))
	w.do(w.SetNameServerFault(ctx, "", localgce.NameServerSilent)) // b is off
	w.do(w.StartVM(ctx, "b"))
	look("all are silent", "b", silent)
}

func TestLinksAreLimitedAndReset(t *testing.T) {
	w := start(t, config(t.TempDir(), 21, "a", "b"))
	ctx := t.Context()
	w.awaitReady("a", "b")
	w.refused("bandwidth 5", w.SetLink(ctx, "a", localgce.Link{Bandwidth: 5}))
	w.refused("delay 1h0m0s", w.SetLink(ctx, "a", localgce.Link{Delay: time.Hour}))
	send := func() time.Duration {
		t.Helper()
		receiver, err := w.Command(ctx, "b", "/usr/local/bin/tiny", "tiny", "sink")
		w.do(err)
		w.do(receiver.Start())
		out := w.must("a", "/usr/local/bin/tiny tiny pour "+w.address("b"))
		_ = receiver.Wait()
		took, err := time.ParseDuration(strings.TrimSpace(out))
		w.do(err)
		return took
	}
	free := send()
	w.do(w.SetLink(ctx, "a", localgce.Link{Bandwidth: 2 << 20}))
	limited := send()
	w.do(w.KillVM(ctx, "a"))
	w.do(w.StartVM(ctx, "a"))
	booted := send()
	w.do(w.SetLink(ctx, "a", localgce.Link{}))
	w.do(w.SetLink(ctx, "a", localgce.Link{}))
	again := send()
	t.Logf("2 MiB: %s, limited to 2 MiB a second %s, after a boot %s, then %s", free, limited, booted, again)
	if limited < 800*time.Millisecond || booted < 800*time.Millisecond || again > 500*time.Millisecond {
		t.Error("the limit is not as it should be")
	}
	if err := w.SetLink(ctx, "a", localgce.Link{Delay: 50 * time.Millisecond}); err != nil {
		// and where it has it, the next line is slow, not wrong
		w.refused("delay needs netem, which this kernel lacks", err)
	}
	w.must("a", "true")

	if n, err := w.ResetConnections(ctx, "a", "b"); n != 0 || err != nil {
		t.Errorf("reset %d of none, %v", n, err)
	}
	hold, err := w.Command(ctx, "a", "/usr/local/bin/tiny", "tiny", "hold", w.address("b"))
	w.do(err)
	out, err := hold.StdoutPipe()
	w.do(err)
	w.do(hold.Start())
	var said string
	_, _ = fmt.Fscanln(out, &said)
	if n, err := w.ResetConnections(ctx, "a", "b"); n != 1 || err != nil {
		t.Errorf("reset %d of 1, %v", n, err)
	}
	_, _ = fmt.Fscanln(out, &said)
	if _ = hold.Wait(); said != "broken" {
		t.Errorf("the connection is %q", said)
	}
}

func TestComputeAPIStopsVMs(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	w := start(t, config(t.TempDir(), 26, "a", "b"))
	w.awaitReady("a", "b")
	api, err := compute.NewService(t.Context(), option.WithEndpoint(w.Status().ComputeEndpoint),
		option.WithoutAuthentication())
	w.do(err)
	requests := 0
	stop := func(name string) {
		t.Helper()
		requests++
		request := fmt.Sprintf("00000000-0000-4000-8000-%012d", requests)
		op, err := api.Instances.Stop("quorate-local", w.vm(name).Zone, w.vm(name).InstanceID).RequestId(request).Do()
		w.do(err)
		again, err := api.Instances.Stop("271828182845", w.vm(name).Zone, name).RequestId(request).Do()
		w.do(err)
		if again.Name != op.Name || op.OperationType != "stop" || fmt.Sprint(op.TargetId) != w.vm(name).InstanceID {
			t.Errorf("one request began %s (%s of %d) and %s", op.Name, op.OperationType, op.TargetId, again.Name)
		}
		w.await("the operation is over", func() bool {
			op, err := api.ZoneOperations.Get("quorate-local", w.vm(name).Zone, op.Name).Do()
			w.do(err)
			return op.Status == "DONE" && op.Error == nil
		})
		if is := w.vm(name).Status; is != "TERMINATED" {
			t.Errorf("%s is %s", name, is)
		}
	}
	stop("a")
	w.do(w.FreezeVM(t.Context(), "b"))
	stop("b")
	w.do(w.StartVM(t.Context(), "a"))
	w.must("a", "test -f /var/lib/quorate/stopped-in-order")
	stop("a") // while the other is off
	stop("a") // although it is off
	w.do(w.StartVM(t.Context(), "b"))
	path := fmt.Sprintf("projects/quorate-local/zones/%s/instances/a/stop", w.vm("a").Zone)
	if out := w.must("b", "/usr/local/bin/tiny tiny post "+w.Status().ComputeEndpoint+path); !strings.Contains(out,
		"Required 'compute.instances.stop' permission") {
		t.Errorf("a VM may stop another: %s", out)
	}
}

func TestComputeAPIFailsForOneCaller(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	w := start(t, config(t.TempDir(), 22, "a", "b"))
	base := "/usr/local/bin/tiny tiny get " + w.Status().ComputeEndpoint + "projects/quorate-local/"
	list, get := base+"aggregated/instances", base+"zones/us-central1-b/instances/b"
	w.refused("no vm is named", w.SetFault(localgce.Compute, localgce.Fault{Kind: "forbidden", Who: "c"}))
	w.refused("deprovisioning need some", w.SetFault(localgce.Compute, localgce.Fault{Kind: "missing"}))
	w.refused("deprovisioning need some", w.SetFault(localgce.Compute, localgce.Fault{Kind: "unlisted"}))
	w.do(w.SetFault(localgce.Compute, localgce.Fault{Kind: "notfound", Who: "a"}))
	if a, b := w.must("a", list), w.must("b", list); !strings.Contains(a, `"code":404`) ||
		!strings.Contains(b, `"name":"a"`) {
		t.Errorf("a hears %s; b hears %s", a, b)
	}
	w.do(w.SetFault(localgce.Compute, localgce.Fault{Kind: "missing", VMs: []string{"b"}, Who: "a"}))
	if a, disks := w.must("a", list), w.diskIDs("a"); strings.Contains(a, `"name":"b"`) ||
		!strings.Contains(a, `"name":"a"`) || len(disks) != 2 || !strings.Contains(w.must("a", get), `"code":404`) {
		t.Errorf("b is not missing: %s, disks %q", a, disks)
	}
	w.do(w.SetFault(localgce.Compute, localgce.Fault{Kind: "unlisted", VMs: []string{"b"}, Who: "a"}))
	if a, disks := w.must("a", list), w.diskIDs("a"); strings.Contains(a, `"name":"b"`) ||
		!strings.Contains(a, `"name":"a"`) || len(disks) != 2 || !strings.Contains(w.must("a", get), `"name":"b"`) {
		t.Errorf("b is not in no list alone: %s, disks %q", a, disks)
	}
	w.do(w.SetFault(localgce.Compute, localgce.Fault{Kind: "stale"}))
	w.do(w.SetFault(localgce.Compute, localgce.Fault{Who: "a"}))
	id := w.vm("b").InstanceID
	w.do(w.RecreateVM(t.Context(), "b", localgce.Recreation{Wipe: true}))
	for _, script := range []string{list, get} {
		if a := w.must("a", script); !strings.Contains(a, `"id":"`+id+`"`) {
			t.Errorf("what is stale knows more than it should: %s", a)
		}
	}
	w.do(w.SetFault(localgce.Compute, localgce.Fault{}))
	if a := w.must("a", get); strings.Contains(a, id) || !strings.Contains(a, w.vm("b").InstanceID) {
		t.Errorf("well again: %s", a)
	}
	w.do(w.SetFault(localgce.Metadata, localgce.Fault{Kind: "away"}))
	for _, vm := range []string{"a", "b"} {
		if w.reaches(vm, "http://169.254.169.254/") {
			t.Errorf("the metadata server of %s answers", vm)
		}
	}
}
