package localgce_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/realtest"
)

// output is what a process has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// last is the number in the last whole line.
func (o *output) last() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.Split(o.text.String(), "\n")
	n, _ := strconv.Atoi(lines[max(0, len(lines)-2)]) // 0 where there is none
	return n
}

// A VM counts, and says each number once it is synced. Then its disk is torn: what was said is there, and what was not
// synced is not.
func TestADiskTornByACopyHoldsWhatWasSynced(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	conf := config(t.TempDir(), 23, "a")
	conf.Reflink = true
	w := start(t, conf)
	ctx, id := t.Context(), w.vm("a").DiskID
	for round := range 3 {
		lost := "lost" + strconv.Itoa(round) // a new name: ext4 writes at once what replaces a file's text
		w.must("a", "cd "+data+"; echo one > kept; sync kept .; echo two > "+lost)
		// Commands are run in addition to what the VM runs by itself: this one goes to the VM's cgroup, or it would not
		// stand still with the VM.
		count, err := w.Command(ctx, "a", "sh", "-c", "mkdir -p /sys/fs/cgroup/count; echo $$ > "+
			"/sys/fs/cgroup/count/cgroup.procs; n=0; while :; do n=$((n+1)); echo $n >> "+data+"count; "+
			"sync "+data+"count; echo $n; done")
		w.do(err)
		said := &output{}
		count.Stdout = said
		w.do(count.Start())
		w.await("it counts", func() bool { return said.last() > 20 })
		w.do(w.TearDiskByCopy(ctx, "a"))
		_ = count.Wait()
		w.refused("vm a is TERMINATED", w.TearDiskByCopy(ctx, "a"))
		w.do(w.StartVM(ctx, "a"))
		w.must("a", "cd "+data+"; grep one kept && ! test -s "+lost)
		there, _ := strconv.Atoi(strings.TrimSpace(w.must("a", "grep -c . "+data+"count")))
		if there < said.last() {
			t.Errorf("round %d: %d numbers were synced and said, %d are there", round, said.last(), there)
		}
		w.must("a", "rm "+data+"count")
	}
	if w.vm("a").DiskID != id {
		t.Error("a torn disk is another disk")
	}
	if files, _ := filepath.Glob(filepath.Join(w.DiskFolder(), "*")); len(files) != 1 {
		t.Errorf("files that no disk has: %q", files)
	}
}

// A snapshot of a disk in use, and a copy in another VM, are what a power cut would leave, and the VM goes on.
func TestACopyOfADiskInUseLacksWhatWasNotSynced(t *testing.T) {
	realtest.OnlyInCases(t)
	t.Parallel()
	conf := config(t.TempDir(), 24, "a", "b")
	conf.Reflink = true
	w := start(t, conf)
	ctx := t.Context()
	w.must("a", "cd "+data+"; echo one > kept; sync kept .; echo two > lost")
	w.do(w.SnapshotDisk("a", "s"))
	w.do(w.KillVM(ctx, "b"))
	w.do(w.CloneDisk("a", "b"))
	const torn = "cd " + data + "; grep one kept && ! test -s lost"
	w.do(w.StartVM(ctx, "b"))
	w.must("b", torn)
	w.must("a", "grep two "+data+"lost")
	w.do(w.KillVM(ctx, "b"))
	w.do(w.RestoreDisk("b", "s", false))
	w.do(w.StartVM(ctx, "b"))
	w.must("b", torn)

	// The volume stays where it is, whatever the next project asks for.
	disk := w.vm("a").DiskID
	w.do(w.Close(context.Background()))
	wantNoTraces(t, w.conf.State)
	w.conf.Reflink = false
	w = start(t, w.conf)
	w.must("a", "grep two "+data+"lost")
	if w.vm("a").DiskID != disk {
		t.Error("a has another disk after the project was down")
	}
}

func TestAVolumeIsRefusedWhereDisksArePlain(t *testing.T) {
	conf := config(t.TempDir(), 25, "a")
	w := start(t, conf)
	if file := filepath.Join(conf.State, "x"); os.WriteFile(file, nil, 0o600) == nil &&
		exec.Command("cp", "--reflink=always", file, file+"y").Run() == nil {
		t.Skip("this folder's file system clones files: no volume is ever needed")
	}
	w.refused("the disks lie where files cannot be cloned (Config.Reflink, up --reflink)",
		w.TearDiskByCopy(t.Context(), "a"))
	w.must("a", "echo here > "+data+"file")
	w.do(w.Close(context.Background()))
	conf.Reflink = true
	_, err := localgce.Start(t.Context(), conf)
	w.refused("has disks already, where files cannot be cloned", err)
	conf.Reflink = false
	w = start(t, conf)
	w.must("a", "grep here "+data+"file")
}

// The default must not pay for the volume: this tells what it costs.
func BenchmarkSync(b *testing.B) {
	for name, reflink := range map[string]bool{"plain": false, "volume": true} {
		b.Run(name, func(b *testing.B) {
			if os.Geteuid() != 0 {
				b.Skip("needs root: network namespaces, mounts, loop devices")
			}
			conf := config(b.TempDir(), 26, "a")
			conf.Reflink = reflink
			began := time.Now()
			p, err := localgce.Start(b.Context(), conf)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-start")
			b.Cleanup(func() { _ = p.Close(context.Background()) })
			b.ResetTimer()
			cmd, err := p.Command(b.Context(), "a", "dd", "if=/dev/zero", "of="+data+"x", "bs=4k", "oflag=dsync",
				"count="+strconv.Itoa(b.N))
			if err == nil {
				err = cmd.Run()
			}
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
