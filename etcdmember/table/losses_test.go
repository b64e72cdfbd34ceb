package table

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/record/bucket/buckettest"
	"github.com/quorate/quorate/internal/replica"
)

// lifetimes are records in each stage of a cluster's life, with every kind of object that the stage has.
var lifetimes = []struct {
	name string
	f    func() Facts
	// epoch is the newest that is formed, seen which of the viewers there are.
	epoch uint64
	seen  []string
}{
	{"claimed for the first time", from(blank, theirClaim, func(f *Facts) {
		f.incarnation(pb, 1, "102", "d2", 1, 0xb1)
		f.Record.Bundle = 1
	}), 0, []string{"empty"}},
	{"formed", formedFor(1), 1, []string{"runs", "restarts", "reboots", "empty", "leads"}},
	{"ended by an accepted order", from(formedFor(1), acceptedB), 1,
		[]string{"runs", "restarts", "reboots", "stopped", "restores", "leads"}},
	{"closed", from(formedFor(1), acceptedB, allStopped, isClosed), 1,
		[]string{"runs", "reboots", "stopped", "restores", "empty", "leads"}},
	{"closed, the next claimed", from(formedFor(1), acceptedB, allStopped, isClosed, nextClaimed), 1,
		[]string{"runs", "reboots", "stopped", "restores", "empty", "leads"}},
	{"closed, the next given up", from(formedFor(1), acceptedB, allStopped, isClosed, nextClaimed,
		func(f *Facts) { f.abandon() }), 1, []string{"runs", "reboots", "stopped", "restores", "empty", "leads"}},
	{"restored", from(formedFor(1), acceptedB, allStopped, isClosed, nextClaimed, func(f *Facts) {
		f.form(0xc2, 0xb2)
		f.Record.Orders[0].Done = &record.Done{By: "b"}
		for n, p := range []replica.Place{pa, pb, pc} {
			f.incarnation(p, 2, fmt.Sprint(101+n), fmt.Sprintf("d%d", n+1), 2, record.MemberID(0xa2+0x10*n))
		}
		f.marksAndSnapshots(2)
	}), 2, []string{"runs", "restarts", "reboots", "stopped", "empty", "leads"}},
}

// formedFor is three replicas in an epoch, with orders, marks, snapshots and two generations of the bundle.
func formedFor(epoch uint64) func() Facts {
	return from(three, func(f *Facts) {
		f.order(record.Order{Kind: record.OrderLeave, Place: &replica.Place{Zone: "us-central1-f", Name: "m-f"},
			Done: &record.Done{By: "a"}})
		f.order(record.Order{Kind: record.OrderReplicas, Replicas: 3})
		f.Record.Bundle = 2
		f.marksAndSnapshots(epoch)
	})
}

// marksAndSnapshots gives the epoch a mark of each of its members and a snapshot.
func (f *Facts) marksAndSnapshots(epoch uint64) {
	for _, all := range f.Record.Replicas {
		for _, i := range all {
			if i.Epoch == epoch {
				id := i.Started.MemberID
				f.Record.Marks[id] = record.Mark{MemberID: id, Epoch: epoch, Term: 3, Applied: 90,
					Beat: t0.Add(-time.Hour)}
			}
		}
	}
	f.Record.Snapshots = append(f.Record.Snapshots, epoch)
}

// acceptedB: b restores from its own disk, and has accepted the order; one VM was stopped for it.
func acceptedB(f *Facts) {
	f.Record.Orders, f.Record.Bundle = nil, 1 // it is order 1
	f.order(record.Order{Kind: record.OrderRestore, By: "eva", Accepted: &record.Accepted{By: "b"},
		Restore: &record.RestoreOrder{Ends: 1, Replica: pb, From: record.Source{Kind: record.SourceDirectory,
			MemberID: 0xb1, DiskID: "d2"}}, VMStops: map[string]record.VMStop{"103": {InstanceID: "103", By: "eva"}}})
}

// allStopped: everybody has said so, and the verdict is that the order is carried out.
func allStopped(f *Facts) {
	f.stopped(pa, 1, 0xa1, 100)
	f.stopped(pb, 1, 0xb1, 100)
	f.stopped(pc, 1, 0xc3, 100)
	f.Record.Orders[0].Verdict = &record.Verdict{Closing: true, By: "b"}
}

func nextClaimed(f *Facts) {
	f.claim(2, "t2", pb, "102", record.Source{Kind: record.SourceDirectory, Order: 1, MemberID: 0xb1, DiskID: "d2"})
}

// viewers are replicas that find the record so: what they do, by the row and the act.
var viewers = map[string]func(f Facts, epoch uint64) string{
	// runs: the member of the newest formed epoch serves, with a quorum.
	"runs": func(f Facts, epoch uint64) string {
		f = f.member(epoch)
		f.Directory.Running = true
		return rowAndAct(f)
	},
	// restarts: the agent was started again, and the directory is as the member has left it.
	"restarts": func(f Facts, epoch uint64) string { return rowAndAct(f.member(epoch)) },
	// reboots: the VM was, and nobody answers yet.
	"reboots": func(f Facts, epoch uint64) string {
		f = f.member(epoch)
		f.Me.BootID, f.Answers = "boot2", nil
		return rowAndAct(f)
	},
	// stopped: its member has stopped for the first order, of epoch 1, and its VM boots.
	"stopped": func(f Facts, _ uint64) string {
		f.disk(1, "t1", 1, 0xa1, PhaseStopped)
		f.Agent.StoppedFor, f.Agent.Ended, f.Me.BootID = 1, 1, "boot2"
		return rowAndAct(f)
	},
	// restores: it is b, has stopped, and carries the order out.
	"restores": func(f Facts, _ uint64) string {
		f.disk(1, "t1", 1, 0xb1, PhaseStopped)
		f.Me.Place, f.Me.InstanceID, f.DiskID = pb, "102", "d2"
		f.Agent.Replica, f.Agent.InstanceID, f.Agent.StoppedFor, f.Agent.Ended = pb, "102", 1, 1
		return rowAndAct(f)
	},
	// empty: its disk is, and nobody answers.
	"empty": func(f Facts, _ uint64) string {
		f.wipe()
		f.recreate("d9")
		return rowAndAct(f)
	},
	// leads: its member leads, and the learners and the dead are waited for.
	"leads": func(f Facts, _ uint64) string {
		p, stands := HistoryOf(Facts{Now: t0, Me: f.Me, Record: f.Record, RecordErr: f.RecordErr}).Standstill(false)
		if stands {
			return p.Blocked.Name
		}
		return "acts"
	},
}

// member gives me the valid disk of a member of an epoch, and its quorum.
func (f Facts) member(epoch uint64) Facts {
	if epoch == 1 {
		f.disk(1, "t1", 1, 0xa1, PhaseStarted)
		f.quorum()
		return f
	}
	f.disk(2, "t2", 2, 0xa2, PhaseStarted)
	f.quorum(entry(pa, "101", 0xa2), entry(pb, "102", 0xb2), entry(pc, "103", 0xc2))
	f.Directory.ClusterID, f.Answers[0].ClusterID = 0xc2, 0xc2
	return f
}

func rowAndAct(f Facts) string {
	p := Decide(f.Now, Classify(f))
	if p.Blocked != nil {
		return fmt.Sprintf("%s %s %s", p.Row, p.Act, p.Blocked.Name)
	}
	return fmt.Sprintf("%s %s", p.Row, p.Act)
}

// TestWhatEachLossDoes takes each single object away from a whole record, and compares with testdata/losses.txt what
// `quorate record check` says of it and what the replicas do about it. Where nothing follows, nothing is written.
func TestWhatEachLossDoes(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What one lost object does: what record check says, and each replica that then does " +
		"another thing than with a whole record.\n# Made by go test -run WhatEachLossDoes -update\n")
	for _, l := range lifetimes {
		f := l.f()
		folder := t.TempDir()
		store := buckettest.Serve(t, folder, testCluster)
		fill(t, store, f.Record)
		root := filepath.Join(folder, instance.BucketName, testCluster)
		keys := objectsIn(t, root) // before a check, which leaves an object of its own
		whole := judged(t, store, f, l.epoch, l.seen)
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(l.name))
		for _, line := range whole {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		for _, key := range keys {
			data, err := os.ReadFile(filepath.Join(root, key))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(root, key)); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s\n", key)
			for _, line := range judged(t, store, f, l.epoch, l.seen) {
				if !slices.Contains(whole, line) {
					fmt.Fprintf(&b, "  %s\n", line)
				}
			}
			if err := os.WriteFile(filepath.Join(root, key), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden(t, "testdata/losses.txt", b.String())
}

// judged is what the check says of a record's content, and what each viewer does.
func judged(t *testing.T, store *bucket.Store, f Facts, epoch uint64, seen []string) (out []string) {
	t.Helper()
	for _, finding := range store.Check(t.Context(), "") {
		if !slices.Contains([]string{"reach", "write-once", "deletion", "rights", "bucket"}, finding.Subject) {
			out = append(out, "check     "+finding.String())
		}
	}
	f.Record, f.RecordErr = store.View(t.Context())
	for _, name := range seen {
		out = append(out, fmt.Sprintf("%-8s  %s", name, viewers[name](f, epoch)))
	}
	return out
}

// objectsIn lists the keys of a record in a folder, but for what checks leave.
func objectsIn(t *testing.T, root string) (keys []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		key, _ := filepath.Rel(root, path)
		if err == nil && !d.IsDir() && !strings.HasPrefix(key, "checks/") {
			keys = append(keys, key)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// fill writes what a View holds into a record.
func fill(t *testing.T, s *bucket.Store, v record.View) {
	t.Helper()
	ctx := t.Context()
	made := func(_ any, won bool, err error) {
		t.Helper()
		if err != nil || !won {
			t.Fatalf("won %t, %v", won, err)
		}
	}
	made(s.CreateInception(ctx, *v.Inception))
	for _, e := range v.Epochs {
		claim := *e.Claim
		claim.Time = t0 // the check says it
		made(s.CreateClaim(ctx, e.Number, claim))
		if e.Outcome != nil {
			made(s.CreateOutcome(ctx, e.Number, *e.Outcome))
		}
		if e.Closed != nil {
			made(s.CreateClosed(ctx, e.Number, *e.Closed))
		}
		for _, x := range e.Stopped {
			made(s.CreateStopped(ctx, e.Number, x))
		}
	}
	for p, all := range v.Replicas {
		for _, i := range all {
			made(s.CreateIncarnation(ctx, i))
			if i.Started != nil {
				made(s.ConfirmIncarnation(ctx, p, i.Number, *i.Started))
			}
			made(s.NoteDisk(ctx, p, i.Number, record.DataDisk{DiskID: i.DiskID}))
		}
	}
	for _, m := range v.Marks {
		if err := s.WriteMark(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range v.Orders {
		fillOrder(t, s, o, made)
	}
	for g := range v.Bundle {
		made(s.CreateSealed(ctx, g+1, []byte("sealed")))
	}
	for _, e := range v.Snapshots {
		info := record.Snapshot{Epoch: e, Revision: 7, Time: t0}
		if _, err := s.CreateSnapshot(ctx, info, strings.NewReader("a database")); err != nil {
			t.Fatal(err)
		}
	}
}

func fillOrder(t *testing.T, s *bucket.Store, o record.Order, made func(any, bool, error)) {
	t.Helper()
	ctx := t.Context()
	if _, err := s.CreateOrder(ctx, o); err != nil {
		t.Fatal(err)
	}
	if o.Accepted != nil {
		made(s.AcceptOrder(ctx, o.Number, *o.Accepted))
	}
	if o.Verdict != nil {
		made(s.SettleOrder(ctx, o.Number, *o.Verdict))
	}
	for _, x := range o.VMStops {
		made(s.NoteVMStop(ctx, o.Number, x))
	}
	if o.Done != nil {
		made(s.CompleteOrder(ctx, o.Number, *o.Done))
	}
}
