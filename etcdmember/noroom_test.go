package etcdmember

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/etcdmember/table"
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
	m := newMachine(t, pa, newRecord())
	m.smallDisk()
	empty := m.fill()
	ms := m.open()
	booted := boots(t, ms)
	eventually(t, "no-room", func() bool { return blockedName(ms) == table.NoRoom })
	b := ms.Waits()[0]
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

// What a full disk is told from: what happened, and not the room alone.
func TestAFullDiskIsToldFromWhatHappened(t *testing.T) {
	const said = "failed to save Raft hard state and entries: write 0.wal: no space left on device"
	start, keep := table.Plan{Act: table.ActStart, Row: 28}, table.Plan{Act: table.ActKeep, Row: 1}
	for _, tc := range []struct {
		name    string
		plan    table.Plan
		free    int64 // MiB
		end     string
		failed  error
		early   bool
		running bool
		roomErr error
		want    string // of what is said; empty: it is no wait for room
	}{
		{"a start on a disk that is nearly full", start, 1, "", nil, false, false, nil, ""},
		{"etcd ended for want of space", start, 1, said, nil, false, false, nil,
			"it has 1 MiB free, and etcd needs 128 MiB to go on; etcd ended for want of space."},
		{"and there is room again", start, 128, said, nil, false, false, nil, ""},
		{"and its room is not known", start, 1, said, nil, false, false, errors.New("no answer"), ""},
		{"and it runs again", keep, 1, said, nil, false, true, nil, ""},
		{"it does not stay up, and there is not one file's room", start, 63, "", nil, true, false, nil,
			"etcd was started 3 times"},
		{"it does not stay up, and there is", start, 64, "", nil, true, false, nil, ""},
		{"a step failed for want of space", keep, 1, "", fmt.Errorf("write: %w", unix.ENOSPC), false, true, nil,
			"the step to keep failed: write: no space left on device"},
		{"another process's step did", start, 1, "", errors.New("make: copy: no space left on device"), false, false,
			nil, "no space left on device"},
		{"a step failed for something else", start, 1, "", errors.New("broken"), false, false, nil, ""},
	} {
		ms := newMachine(t, pa, newRecord()).open()
		ms.room = func(string) (table.Room, error) {
			return table.Room{Free: tc.free << 20, Total: 1 << 40},
				tc.roomErr
		}
		ms.starts.runs = 3
		if tc.failed != nil {
			ms.failure = &failure{row: tc.plan.Row, act: tc.plan.Act, err: tc.failed}
		}
		f := table.Facts{Now: t0}
		f.Directory.Running, f.Directory.End.Text = tc.running, tc.end
		p, full := ms.noRoom(f, tc.plan, tc.early)
		if full != (tc.want != "") || full && (!strings.Contains(p.Blocked.Reason, tc.want) || p.Act != tc.plan.Act) {
			t.Errorf("%s: %t, %+v", tc.name, full, p.Blocked)
		}
	}
}

// A member that ends again and again on a full disk is started at its pace, and the wait for room stays.
func TestAMemberThatEndsOnAFullDiskWaitsForRoom(t *testing.T) {
	ms := newMachine(t, pa, newRecord()).open()
	ms.room = func(string) (table.Room, error) { return table.Room{Free: 1 << 20, Total: 1 << 30}, nil }
	f := table.Facts{Now: t0}
	f.Directory.End.Text = "failed to commit tx: no space left on device"
	for n, want := range []table.Act{table.ActStart, table.ActStart, table.ActWait} {
		p := ms.hold(f, table.Plan{Act: table.ActStart, Row: 28})
		if p.Act != want || p.Blocked == nil || p.Blocked.Name != table.NoRoom {
			t.Errorf("start %d: %s, %+v", n, p.Act, p.Blocked)
		}
		ms.starts.started(f.Now)
	}
}

// A peer's port that is silent for a moment is not shown: its member is being started again.
func TestSilentPortsAreShownAfterAWhile(t *testing.T) {
	ms := newMachine(t, pa, newRecord()).open()
	waits := table.Plan{Act: table.ActWait, Row: 23}.Waiting("peers-do-not-connect", "none answers.", "Open the port.")
	f := table.Facts{Now: t0}
	for _, step := range []struct {
		after time.Duration
		plan  table.Plan
		shown bool
	}{
		{0, waits, false}, {portPatience - time.Second, waits, false}, {time.Second, waits, true},
		{time.Second, table.Plan{Act: table.ActMarkAdding, Row: 23}, false}, {time.Second, waits, false},
		{portPatience, waits, true},
	} {
		f.Now = f.Now.Add(step.after)
		if p := ms.hold(f, step.plan); (p.Blocked != nil) != step.shown || p.Act != step.plan.Act {
			t.Errorf("at %s: %s, %+v, want it shown: %t", f.Now.Sub(t0), p.Act, p.Blocked, step.shown)
		}
	}
}

// A running replica whose member has ended on a full disk says so before the next observation.
func TestAMemberThatEndedOnAFullDiskIsShownAtOnce(t *testing.T) {
	m := newMachine(t, pa, newRecord())
	if _, err := m.boot(m.open()); err != nil {
		t.Fatal(err)
	}
	ms := m.open()
	ms.room = func(string) (table.Room, error) { return table.Room{Free: 0, Total: 1 << 30}, nil }
	writeEnd(ms.StatusSocket(), ms.etcdDir(), "failed to commit tx: no space left on device", t0)
	if ms.showFull(t0); blockedName(ms) != "" {
		t.Errorf("it runs, and waits for %s", blockedName(ms))
	}
	m.child.Stop(t.Context())
	if ms.showFull(t0); blockedName(ms) != table.NoRoom {
		t.Errorf("it waits for %q", blockedName(ms))
	}
	f := table.Facts{Now: t0.Add(time.Minute)}
	f.Directory.End.Text = "no space left on device"
	ms.show(f, ms.hold(f, table.Plan{Act: table.ActStart, Row: 28}))
	if b := ms.Waits()[0]; b.Name != table.NoRoom || b.Row != "28" || !b.Since.Equal(t0) {
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
