package restoredir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
)

// realEtcd is etcd in this process.
type realEtcd struct {
	*embed.Etcd
	once sync.Once
}

// smallLogs keeps the files of a log small: 64 MiB of zeros for each take time.
var smallLogs = sync.OnceFunc(func() { wal.SegmentSizeBytes = 64 << 10 })

// Close may be called again.
func (e *realEtcd) Close() { e.once.Do(e.Etcd.Close) }

// realMember runs real etcd on a directory, without TLS; without peers also without a socket.
func realMember(t *testing.T, change func(*embed.Config)) *realEtcd {
	t.Helper()
	e := embed.NewConfig()
	e.Name = "m"
	e.Logger, e.LogOutputs, e.LogLevel = "zap", []string{os.DevNull}, "fatal"
	e.ListenPeerUrls, e.ListenClientUrls, e.AdvertiseClientUrls = nil, nil, nil
	e.InitialCluster = e.InitialClusterFromName(e.Name)
	e.MaxLearners = table.MaxLearners
	change(e)
	started, err := embed.StartEtcd(e)
	if err != nil {
		t.Fatal(err)
	}
	out := &realEtcd{Etcd: started}
	t.Cleanup(out.Close)
	return out
}

func onDir(dir string) func(*embed.Config) { return func(e *embed.Config) { e.Dir = dir } }

func serving(t *testing.T, e *realEtcd) *realEtcd {
	t.Helper()
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(20 * time.Second):
		t.Fatal("etcd does not come up")
	}
	return e
}

func putReal(t *testing.T, e *realEtcd, key, value string) {
	t.Helper()
	if _, err := e.Server.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte(key),
		Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
}

// realKeys are all keys with their values, and the revision at which they were read.
func realKeys(t *testing.T, e *realEtcd) (string, int64) {
	t.Helper()
	r, err := e.Server.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, kv := range r.Kvs {
		out = append(out, fmt.Sprintf("%s=%s", kv.Key, kv.Value))
	}
	return strings.Join(out, " "), r.Header.Revision
}

// appendToLog puts entries behind the last one of a log and leaves the commit index as it was saved: what a follower
// has acknowledged before it heard that the leader counted it.
func appendToLog(t *testing.T, dir string, data ...[]byte) {
	t.Helper()
	lg := zap.NewNop()
	snaps, err := wal.ValidSnapshotEntries(lg, datadir.LogDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	newest := snaps[len(snaps)-1]
	w, err := wal.Open(lg, datadir.LogDir(dir), &walpb.Snapshot{Index: newest.Index, Term: newest.Term})
	if err != nil {
		t.Fatal(err)
	}
	_, state, entries, err := w.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	next, term := entries[len(entries)-1].GetIndex(), state.GetTerm()
	var more []*raftpb.Entry
	for _, d := range data {
		next++
		more = append(more, &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Term: &term, Index: proto.Uint64(next),
			Data: d})
	}
	if err := errors.Join(w.Save(&raftpb.HardState{}, more), w.Close()); err != nil {
		t.Fatal(err)
	}
}

func putEntry(t *testing.T, key, value string) []byte {
	t.Helper()
	b, err := proto.Marshal(&etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: 77},
		Put: &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value)}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fingerprint is the content of all files below a folder.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n", path, len(b))
		h.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func makingFrom(dir string, scratch string) Job {
	return Job{Directory: dir, Scratch: scratch, Out: filepath.Join(scratch, "new"), Name: "zone.new.7",
		DNSName: "new.zone.c.quorate.internal", Token: "t2", Epochs: 1}
}

func TestADirectoryIsReadToTheLastEntryOfItsLog(t *testing.T) {
	t.Parallel()
	smallLogs()
	dir := filepath.Join(t.TempDir(), "old")
	e := serving(t, realMember(t, onDir(dir)))
	oldCluster := e.Server.Cluster().ID()
	for i := range 20 {
		putReal(t, e, fmt.Sprintf("k%02d", i), "v")
	}
	_, oldRevision := realKeys(t, e)
	e.Close()
	appendToLog(t, dir, putEntry(t, "late1", "acknowledged"), putEntry(t, "late2", "acknowledged"))
	before := fingerprint(t, dir)
	k := makingFrom(dir, t.TempDir())
	if err := k.Make(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if fingerprint(t, dir) != before {
		t.Error("the source was changed")
	}
	d, err := datadir.Read(k.Out)
	if err != nil || d.OpenErr != nil || d.Marker {
		t.Fatalf("%+v, %v", d, err)
	}
	if err := datadir.CheckPages(t.Context(), datadir.DatabaseFile(k.Out)); err != nil { // it has a list of free pages
		t.Errorf("its database: %v", err)
	}
	made := serving(t, realMember(t, onDir(k.Out)))
	got, revision := realKeys(t, made)
	if !strings.Contains(got, "k00=v") || !strings.Contains(got, "late1=acknowledged late2=acknowledged") ||
		strings.Count(got, "=") != 22 {
		t.Errorf("it holds %s", got)
	}
	if revision < oldRevision+revisionBump {
		t.Errorf("revision %d, before %d", revision, oldRevision)
	}
	if made.Server.Cluster().ID() == oldCluster {
		t.Error("the old members could talk to it: the cluster id is the same")
	}
	if members := made.Server.Cluster().Members(); len(members) != 1 ||
		members[0].PeerURLs[0] != table.PeerURL(k.DNSName) {
		t.Errorf("members: %+v", members)
	}
	_, err = made.Server.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte("k00"), Revision: oldRevision})
	if !errors.Is(err, mvcc.ErrCompacted) && !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("a read at a revision of the old history: %v, want compacted", err)
	}
}

// An alarm of the old members, CORRUPT of id 0 above all, would refuse the new one's writes, and nobody could ever
// disarm it.
func TestADirectoryIsMadeWithoutTheAlarmsOfItsSource(t *testing.T) {
	t.Parallel()
	smallLogs()
	dir := filepath.Join(t.TempDir(), "old")
	e := serving(t, realMember(t, onDir(dir)))
	putReal(t, e, "k", "v")
	for _, a := range []etcdserverpb.AlarmType{etcdserverpb.AlarmType_NOSPACE, etcdserverpb.AlarmType_CORRUPT} {
		if _, err := e.Server.Alarm(t.Context(), &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE,
			Alarm: a}); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.Server.Alarms()) != 2 {
		t.Fatalf("alarms of the source: %v", e.Server.Alarms())
	}
	e.Close()
	k := makingFrom(dir, t.TempDir())
	if err := k.Make(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	made := serving(t, realMember(t, onDir(k.Out)))
	if left := made.Server.Alarms(); len(left) > 0 {
		t.Errorf("alarms: %v", left)
	}
	putReal(t, made, "after", "v")
	if got, _ := realKeys(t, made); got != "after=v k=v" {
		t.Errorf("it holds %s", got)
	}
}

func TestATornEndOfASourceIsCutOffInTheCopy(t *testing.T) {
	t.Parallel()
	smallLogs()
	dir := filepath.Join(t.TempDir(), "old")
	e := serving(t, realMember(t, onDir(dir)))
	putReal(t, e, "k", "v")
	e.Close()
	appendToLog(t, dir, putEntry(t, "late", "acknowledged"), []byte(strings.Repeat("torn", 4000)))
	logs, _ := filepath.Glob(filepath.Join(datadir.LogDir(dir), "*.wal"))
	b, err := os.ReadFile(logs[len(logs)-1])
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(b), "torntorn") - 6000
	for i := at; i < len(b); i++ {
		b[i] = 0
	}
	if err := os.WriteFile(logs[len(logs)-1], b, 0o600); err != nil {
		t.Fatal(err)
	}
	k := makingFrom(dir, t.TempDir())
	if err := k.Make(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	made := serving(t, realMember(t, onDir(k.Out)))
	if got, _ := realKeys(t, made); got != "k=v late=acknowledged" {
		t.Errorf("it holds %q", got)
	}
}

// A learner's directory is as good a source as a voter's: it becomes the only voter.
func TestALearnersDirectoryIsASource(t *testing.T) {
	t.Parallel()
	smallLogs()
	voterURL, learnerURL := freeURL(t), freeURL(t)
	peer := func(name, dir string, u url.URL) func(*embed.Config) {
		return func(e *embed.Config) {
			e.Name, e.Dir, e.ListenPeerUrls, e.AdvertisePeerUrls = name, dir, []url.URL{u}, []url.URL{u}
			e.InitialCluster = name + "=" + u.String()
		}
	}
	root := t.TempDir()
	voter := serving(t, realMember(t, peer("voter", filepath.Join(root, "voter"), voterURL)))
	putReal(t, voter, "before", "v")
	added := membership.NewMemberAsLearner("", []url.URL{learnerURL}, "etcd-cluster", nil)
	if _, err := voter.Server.AddMember(t.Context(), *added); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "learner")
	learner := realMember(t, func(e *embed.Config) {
		peer("learner", dir, learnerURL)(e)
		e.ClusterState = embed.ClusterStateFlagExisting
		e.InitialCluster = "voter=" + voterURL.String() + ",learner=" + learnerURL.String()
	})
	putReal(t, voter, "after", "v")
	wantIndex := voter.Server.AppliedIndex()
	etcdtest.Eventually(t, "the learner has caught up",
		func() bool { return learner.Server.AppliedIndex() >= wantIndex })
	learner.Close()
	voter.Close()
	k := makingFrom(dir, t.TempDir())
	if err := k.Make(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	made := serving(t, realMember(t, onDir(k.Out)))
	if got, _ := realKeys(t, made); got != "after=v before=v" || made.Server.IsLearner() {
		t.Errorf("it holds %q, learner: %t", got, made.Server.IsLearner())
	}
}

func TestADirectoryIsMadeOfASnapshot(t *testing.T) {
	t.Parallel()
	smallLogs()
	root := t.TempDir()
	e := serving(t, realMember(t, onDir(filepath.Join(root, "old"))))
	putReal(t, e, "k", "v")
	e.Server.KV().Commit()
	file := filepath.Join(root, "snapshot.db")
	write := func(damage bool) {
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		s := e.Server.Backend().Snapshot()
		defer s.Close()
		b := filepath.Join(root, "raw")
		raw, err := os.Create(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.WriteTo(raw); err != nil {
			t.Fatal(err)
		}
		raw.Close()
		data, err := os.ReadFile(b)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(data)
		if damage {
			data[len(data)/2] ^= 0xff
		}
		f.Write(data)
		f.Write(h.Sum(nil)) // as etcd's snapshot call does
		f.Close()
	}
	for _, damage := range []bool{true, false} {
		write(damage)
		k := Job{Snapshot: file, Scratch: root, Out: filepath.Join(root, fmt.Sprint("new", damage)), Name: "m",
			DNSName: "m.z.c.quorate.internal", Token: "t2", Epochs: 1}
		err := k.Make(t.Context(), slog.New(slog.DiscardHandler))
		if damage != (err != nil) {
			t.Fatalf("damaged %t: %v", damage, err)
		}
		if !damage {
			made := serving(t, realMember(t, onDir(k.Out)))
			if got, revision := realKeys(t, made); got != "k=v" || revision < revisionBump {
				t.Errorf("it holds %q at %d", got, revision)
			}
		}
	}
}

func TestABuildThatIsToStopStops(t *testing.T) {
	t.Parallel()
	smallLogs()
	dir := filepath.Join(t.TempDir(), "old")
	e := serving(t, realMember(t, onDir(dir)))
	e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := makingFrom(dir, t.TempDir()).Make(ctx, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestADiskWithoutRoomIsNotFilled(t *testing.T) {
	if err := CheckRoom(t.TempDir(), 1<<60, "the restore"); !errors.Is(err, ErrNoRoom) ||
		!strings.Contains(err.Error(), "the restore needs") {
		t.Errorf("%v", err)
	}
	if err := CheckRoom(t.TempDir(), 0, "the restore"); err != nil {
		t.Errorf("%v", err)
	}
}

func freeURL(t *testing.T) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}

// Two restores of one source: the second history begins above every revision that the first one has handed out.
func TestRevisionsNeverGoBack(t *testing.T) {
	t.Parallel()
	smallLogs()
	dir := filepath.Join(t.TempDir(), "old")
	e := serving(t, realMember(t, onDir(dir)))
	putReal(t, e, "k", "v")
	e.Close()
	var before int64
	for n := range uint64(3) {
		k := makingFrom(dir, t.TempDir())
		k.Token, k.Epochs = fmt.Sprint("t", n), n+1
		if err := k.Make(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		made := serving(t, realMember(t, onDir(k.Out)))
		if _, first := realKeys(t, made); first <= before {
			t.Errorf("restore %d begins at revision %d, and clients have seen %d", n+1, first, before)
		}
		for range 50 {
			putReal(t, made, "k", "later")
		}
		_, before = realKeys(t, made)
		made.Close()
	}
}
