package member

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/etcdmember/table"
)

const outOfRange = "tocommit(120) is out of range [lastIndex(100)]. Was the raft log corrupted, truncated, or lost?"

// endingLog is etcd's own log, as the child makes it, over a directory with a log folder.
func endingLog(t *testing.T) (log *zap.Logger, socket, dir string) {
	t.Helper()
	run := t.TempDir()
	socket, dir = filepath.Join(run, "etcd.sock"), filepath.Join(run, "etcd")
	if err := os.MkdirAll(filepath.Join(dir, "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	e := embed.NewConfig()
	e.Dir, e.LogOutputs, e.LogLevel = dir, []string{filepath.Join(run, "log")}, "info"
	if err := logWithLastWords(e, socket); err != nil {
		t.Fatal(err)
	}
	if err := e.ZapLoggerBuilder(e); err != nil {
		t.Fatal(err)
	}
	return e.GetLogger(), socket, dir
}

// panics lets f end as a process would.
func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	f()
}

// amnesiac is a member of raft that begins anew on a log and is told by its leader that more is committed than it
// holds. The words are raft's own, of the version that is built in.
func amnesiac(t *testing.T, log *zap.Logger, l savedLog, commit uint64) {
	t.Helper()
	storage := raft.NewMemoryStorage()
	for _, err := range []error{
		storage.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: proto.Uint64(1),
			Term:      proto.Uint64(1),
			ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 3}}}}),
		storage.Append(l.entries),
		storage.SetHardState(l.hard),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	node, err := raft.NewRawNode(&raft.Config{ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: storage,
		Logger:        etcdserver.NewRaftLoggerZap(log),
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 16})
	if err != nil {
		t.Fatal(err)
	}
	_ = node.Step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: proto.Uint64(2), To: proto.Uint64(1),
		Term: proto.Uint64(5), Commit: proto.Uint64(commit)})
}

// savedLog is what etcd reads from a log: behind the snapshot at index 1.
type savedLog struct {
	hard    *raftpb.HardState
	entries []*raftpb.Entry
}

// logOf writes entries 2 and 3 with etcd's own code, the second after the state, changes a byte, and reads what it
// holds then.
func logOf(t *testing.T, change func(file []byte)) savedLog {
	t.Helper()
	dir, start := filepath.Join(t.TempDir(), "wal"), &walpb.Snapshot{Index: proto.Uint64(1), Term: proto.Uint64(1),
		ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 3}}}
	w, err := wal.Create(zap.NewNop(), dir, []byte("member"))
	if err != nil {
		t.Fatal(err)
	}
	hard := &raftpb.HardState{Term: proto.Uint64(1), Commit: proto.Uint64(2)}
	entry := func(i uint64) []*raftpb.Entry {
		return []*raftpb.Entry{{Type: raftpb.EntryNormal.Enum(), Index: proto.Uint64(i), Term: proto.Uint64(1)}}
	}
	if err := errors.Join(w.SaveSnapshot(start), w.Save(hard, entry(2)), w.Save(&raftpb.HardState{}, entry(3)),
		w.Close()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	change(b)
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if w, err = wal.OpenForRead(zap.NewNop(), dir, start); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, state, entries, err := w.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return savedLog{state, entries}
}

// entryAsState makes a state of the last entry: of what is before a record's data, which the checksum is of, the type
// comes first.
func entryAsState(file []byte) {
	file[bytes.LastIndex(file, []byte{0x08, byte(wal.EntryType), 0x10})+1] = byte(wal.StateType)
}

func TestRaftsOwnWordsAboutADirectoryAreHeard(t *testing.T) {
	cases := map[string]struct {
		log    savedLog
		commit uint64
	}{
		"the leader has its word for more than the log holds": {logOf(t, func([]byte) {}), 9},
		"the commit index lies beyond the log":                {logOf(t, entryAsState), 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			log, socket, dir := endingLog(t)
			for n := 1; n <= table.UnusableEnds; n++ {
				if said := ReadEnd(socket, dir).Unusable(); said != "" {
					t.Errorf("believed after %d ends: %s", n-1, said)
				}
				panics(t, func() { amnesiac(t, log, c.log, c.commit) })
			}
			end := ReadEnd(socket, dir)
			if end.Times != table.UnusableEnds || end.Unusable() == "" {
				t.Errorf("not heard: %+v", end)
			}
			if err := os.Rename(dir, dir+".archived"); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(dir, "member", "wal"), 0o700); err != nil {
				t.Fatal(err)
			}
			if end := ReadEnd(socket, dir); end != (table.MemberEnd{}) {
				t.Errorf("it is said of another directory: %+v", end)
			}
		})
	}
}

func TestEndsAreCountedOnlyWhereTheyAreOneStory(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	again := outOfRange[:len("tocommit(12")] + "7) is out of range [lastIndex(100)]"
	first := table.MemberEnd{}.After(outOfRange, "1:2", now)
	cases := []struct {
		name string
		end  table.MemberEnd
		want int
	}{
		{"the first", first, 1},
		{"soon after, of another index", first.After(again, "1:2", now.Add(time.Minute)), 2},
		{"long after", first.After(outOfRange, "1:2", now.Add(time.Hour)), 1},
		{"of another directory", first.After(outOfRange, "1:3", now.Add(time.Second)), 1},
		{"another reason", first.After("listen: address already in use", "1:2", now.Add(time.Second)), 1},
		{"after another reason", first.After("listen: address already in use", "1:2", now).After(outOfRange, "1:2",
			now), 1},
	}
	for _, c := range cases {
		if c.end.Times != c.want {
			t.Errorf("%s: %d times, want %d", c.name, c.end.Times, c.want)
		}
	}
}

func TestLastWordsSayTheErrorAndWhatIsNoEndIsNotKept(t *testing.T) {
	log, socket, dir := endingLog(t)
	log.Error("failed to publish", zap.Error(errors.New("timeout")))
	if end := ReadEnd(socket, dir); end.Text != "" {
		t.Errorf("kept: %+v", end)
	}
	panics(t, func() { log.Panic("failed to open the database", zap.Error(errors.New("no space left on device"))) })
	if end := ReadEnd(socket, dir); end.Text != "failed to open the database: no space left on device" ||
		end.Unusable() != "" {
		t.Errorf("kept: %+v", end)
	}
	// as etcd's scheduler does: of a panic of etcd's own, and of the runtime's
	panics(t, func() { log.Panic("member unknown", zap.String("member", "a1")) })
	panics(t, func() { log.Panic("execute job failed", zap.Any("panic", "member unknown")) })
	if end := ReadEnd(socket, dir); end.Text != "member unknown" || end.Times != 2 {
		t.Errorf("kept of a panic that was passed on: %+v", end)
	}
	panics(t, func() { log.Panic("execute job failed", zap.Any("panic", errors.New("nil pointer"))) })
	panics(t, func() { log.Panic("execute job failed", zap.Any("panic", "assertion failed")) })
	if end := ReadEnd(socket, dir); end.Text != "execute job failed: assertion failed" {
		t.Errorf("kept of one that nobody had logged: %+v", end)
	}
	written, err := os.ReadFile(filepath.Join(filepath.Dir(socket), "log"))
	if err != nil || len(written) == 0 {
		t.Errorf("the log itself: %q, %v", written, err)
	}
	if err := errors.Join(ForgetEnd(socket), ForgetEnd(socket)); err != nil {
		t.Error(err)
	}
	if end := ReadEnd(socket, dir); end.Text != "" {
		t.Errorf("not forgotten: %+v", end)
	}
}
