package etcdmember

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
)

// smallDisk puts a file system of one MiB in the place of a machine's data disk.
func (m *machine) smallDisk() {
	m.t.Helper()
	if os.Geteuid() != 0 {
		m.t.Skip("needs root, to mount a file system that can be filled")
	}
	data := filepath.Join(m.dir, "data")
	if err := unix.Mount("tmpfs", data, "tmpfs", 0, "size=1m"); err != nil {
		m.t.Skip("cannot mount: ", err)
	}
	m.t.Cleanup(func() { _ = unix.Unmount(data, unix.MNT_DETACH) })
}

// fill takes all the room on a machine's data disk; empty gives it back.
func (m *machine) fill() (empty func()) {
	m.t.Helper()
	path := filepath.Join(m.dir, "data", "ballast")
	f, err := os.Create(path)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	if !errors.Is(err, unix.ENOSPC) {
		m.t.Fatal(err)
	}
	return func() { os.Remove(path) }
}

// A step that fails because the disk is full is a wait for room, and goes on once there is some.
func TestAFullDiskIsAWaitForRoom(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	m.smallDisk()
	empty := m.fill()
	ms := m.open()
	booted := boots(t, ms)
	etcdtest.Eventually(t, "no-room", func() bool { return blockedName(ms) == table.WaitNoRoom })
	b := ms.cfg.Waits.All()[0]
	data := filepath.Join(m.dir, "data")
	if !strings.Contains(b.Reason, "it has 0 MiB free, and etcd needs 128 MiB to go on; the step to seed failed: ") ||
		!strings.Contains(b.Reason, "no space left on device") ||
		!strings.Contains(b.Next, "Free at least 128 MiB in "+data+", or make the disk larger") {
		t.Errorf("%+v", b)
	}
	empty()
	if err := booted(); err != nil || blockedName(ms) != "" {
		t.Errorf("%v; it waits for %q", err, blockedName(ms))
	}
}

// A peer's port that is silent for a moment is not shown: its member is being started again.
func TestSilentPortsAreShownAfterAWhile(t *testing.T) {
	ms := newMachine(t, pa, etcdtest.NewRecord(testCluster)).open()
	f := three()
	f.Agent, f.Directory, f.PeersAsked = table.AgentFile{}, table.Directory{}, true
	answerThrough(&f)
	silent := table.Decide(f.Now, table.Classify(f)).Blocked
	if silent == nil || silent.Name != "peers-do-not-connect" {
		t.Fatalf("it waits for %+v", silent)
	}
	now := t0
	for _, step := range []struct {
		after time.Duration
		wait  *replica.Wait
		shown bool
	}{
		{0, silent, false}, {silent.Patience - time.Second, silent, false}, {time.Second, silent, true},
		{time.Second, nil, false}, {time.Second, silent, false}, {silent.Patience, silent, true},
	} {
		now = now.Add(step.after)
		if ms.reconciler.show(now, step.wait); (blockedName(ms) != "") != step.shown {
			t.Errorf("at %s it waits for %q, want it shown: %t", now.Sub(t0), blockedName(ms), step.shown)
		}
	}
	if silent.Patience != 5*time.Second {
		t.Errorf("it is shown after %s", silent.Patience)
	}
}

// A running replica whose member has ended on a full disk says so before the next observation.
func TestAMemberThatEndedOnAFullDiskIsShownAtOnce(t *testing.T) {
	m := newMachine(t, pa, etcdtest.NewRecord(testCluster))
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	ms := m.open()
	k := ms.newKeeper()
	ms.disk.roomOf = func(string) (table.Room, error) { return table.Room{Free: 0, Total: 1 << 30}, nil }
	member.WriteEnd(ms.StatusSocket(), ms.cfg.dir().Etcd(), "failed to commit tx: no space left on device", t0)
	if k.showEnded(t0); blockedName(ms) != "" {
		t.Errorf("it runs, and waits for %s", blockedName(ms))
	}
	m.child.Stop(t.Context())
	if k.showEnded(t0); blockedName(ms) != table.WaitNoRoom {
		t.Errorf("it waits for %q", blockedName(ms))
	}
	ended := &replica.Wait{Row: "28", Name: table.WaitNoRoom}
	ms.reconciler.show(t0.Add(time.Minute), ended)
	if b := ms.cfg.Waits.All()[0]; b.Name != table.WaitNoRoom || b.Row != "28" || !b.Since.Equal(t0) {
		t.Errorf("the wait goes on since %s: %+v", t0, b)
	}
}

func TestTheRoomIsAskedOfTheDisk(t *testing.T) {
	r, err := roomOf(t.TempDir())
	if err != nil || r.Total == 0 || r.Free == 0 || r.Free > r.Total {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := roomOf("/does-not-exist"); err == nil {
		t.Error("no error")
	}
}
