package agent

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/internal/replica"
)

// learning is an agent that asks for its data disk's id, at the time at which the record phase ends.
func (v *vm) learning(t *testing.T, ctx context.Context) (a *Agent, stop func()) {
	t.Helper()
	a, in := v.identified()
	stop = a.learnDisk(ctx, in)
	if err := a.disk.OneWriter(ctx); err != nil {
		t.Error(err)
	}
	return a, stop
}

func TestADiskIDThatIsAnsweredAtOnceIsKnownToTheBoot(t *testing.T) {
	v := newVM(t)
	a, stop := v.learning(t, t.Context())
	defer stop()
	s := a.status(t.Context()).Replica
	if a.disk.ID() != "d1" || s.DiskID != "d1" || s.DiskIDUnknown {
		t.Errorf("%q, status %+v", a.disk.ID(), s)
	}
}

// It is asked for once in a boot of the VM, however often the agent starts.
func TestADiskIDIsRememberedForTheBoot(t *testing.T) {
	v := newVM(t)
	_, stop := v.learning(t, t.Context())
	stop()
	v.diskID = func(context.Context) (string, error) { t.Error("asked for what is remembered"); return "", nil }
	again, stop := v.learning(t, t.Context())
	stop()
	if again.disk.ID() != "d1" {
		t.Errorf("after a restart of the agent: %q", again.disk.ID())
	}
	v.metadata.self.BootID = "boot2"
	v.diskID = func(context.Context) (string, error) { return "d2", nil }
	next, stop := v.learning(t, t.Context())
	stop()
	if next.disk.ID() != "d2" {
		t.Errorf("in another boot: %q", next.disk.ID())
	}
}

// Not even certificates are written to a disk of two writers, and no cluster is founded on it.
func TestADiskOfTwoWritersIsLeftAlone(t *testing.T) {
	const why = "data disk d1 is attached to us-central1-b.master-b, too"
	for name, prepare := range map[string]func(*vm, *Agent, identified){
		"a master that is recreated": func(v *vm, _ *Agent, _ identified) { v.record.view.Bundle = 1 },
		"one that has been a member": func(v *vm, a *Agent, in identified) {
			v.established(v.self.Place, "started")
			v.certify(a, in, v.self, "uid")
		},
	} {
		v := newVM(t)
		a, in := v.identified()
		prepare(v, a, in)
		v.users = []replica.Place{v.self.Place, {Zone: "us-central1-b", Name: "master-b"}}
		stop := a.learnDisk(t.Context(), in)
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := a.readRecord(ctx, in); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: the record phase ends with %v", name, err)
		}
		if err := a.preflight(t.Context(), in); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: it may seed: %v", name, err)
		}
	}
}

// A VM without a data disk of its own has no id to learn, and nothing is said to be missing.
func TestWithoutADataDiskNoIDIsUnknown(t *testing.T) {
	v := newVM(t)
	cfg := v.config()
	open := cfg.Open
	cfg.Open = func(ctx context.Context, self replica.Identity, c *replica.Cluster) (Cloud, error) {
		cloud, err := open(ctx, self, c)
		cloud.DataDisk = nil
		return cloud, err
	}
	a := v.agent()
	a.cfg = cfg
	in, err := a.identify(t.Context(), nothing{})
	if err != nil {
		t.Fatal(err)
	}
	a.learnDisk(t.Context(), in)()
	if s := a.status(t.Context()).Replica; a.disk.ID() != "" || s.DiskIDUnknown {
		t.Errorf("%q, status %+v", a.disk.ID(), s)
	}
}

func TestADocumentWithoutADataDiskNeedsTheImages(t *testing.T) {
	t.Parallel()
	image := datadisk.Image{Device: "quorate-data", Dir: "/var/lib/quorate"}
	for _, tc := range []struct {
		name, etcd string
		disk       datadisk.Image
		want       string
	}{
		{"silent", "{}", image, "quorate-data"},
		{"the same folder, and no disk", "{dataDir: /var/lib/quorate}", image, "quorate-data"},
		{"another disk", "{dataDisk: master-pd}", image, "master-pd"},
		{"another folder", "{dataDir: /mnt/ssd}", image, ""},
		{"an image that mounts none", "{}", datadisk.Image{}, ""},
		{"an image that mounts none, and a disk", "{dataDisk: master-pd}", datadisk.Image{}, "master-pd"},
	} {
		v := newVM(t)
		document := strings.Replace(v.document, "etcd: {dataDir: "+v.data()+"}", "etcd: "+tc.etcd, 1)
		c, err := loadCluster("", document, tc.disk)
		if err != nil || c.Etcd.DataDisk != tc.want {
			t.Errorf("%s: got %v, want the disk %q (%v)", tc.name, c, tc.want, err)
		}
	}
	_, err := loadCluster("", strings.Replace(newVM(t).document, "dataDir", "#", 1)+"}\n",
		datadisk.Image{Device: "../sda", Dir: "/var/lib/quorate"})
	if err == nil || !strings.Contains(err.Error(), "the data disk that the image names") ||
		!strings.Contains(err.Error(), "../sda") {
		t.Errorf("got %v, want an error that says whose fault it is", err)
	}
}

// A mount that failed must not leave etcd on the boot disk, also where the document names no disk.
func TestASilentDocumentWaitsForTheImagesDataDisk(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	cfg := v.config()
	if err := os.MkdirAll(cfg.RunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.ImageDisk = datadisk.Image{Device: "no-such-disk", Dir: v.data(), Unit: "data.mount"}
	a := newAgent(cfg, nil)
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
		return len(all) == 1 && all[0].Name == "data-disk-missing"
	})
	stop()
	if err := <-ended; err == nil {
		t.Error("it went on without the disk")
	}
	if _, err := os.Stat(v.data()); err == nil {
		t.Error("something was made beneath the mount point")
	}
	if _, c, _, ok, err := Remembered(cfg.RunDir, cfg.Baked); err != nil || !ok || c.Etcd.DataDisk != "no-such-disk" {
		t.Errorf("a command on this VM has the document %v (%v), want the image's disk in it", c, err)
	}
}
