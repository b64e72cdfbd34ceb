package bucket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

var (
	testTime = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	placeA   = replica.Place{Zone: "z-a", Name: "m1"}
	placeB   = replica.Place{Zone: "z-b", Name: "m2"}
)

// fullView is a record in which every kind of object occurs: epoch 1 was abandoned, epoch 2 formed, stopped and closed,
// epoch 3 restored from a snapshot by order 2.
func fullView() record.View {
	claim2 := testClaim("m1", "t2")
	claim3 := testClaim("m2", "t3")
	claim3.Source = record.Source{Kind: record.SourceSnapshot, Order: 2, MemberID: 0xa, DiskID: "d1",
		Snapshot: "snapshots/2/9-x.db.zst"}
	claim1 := testClaim("m9", "t1")
	return record.View{
		Inception: &record.Inception{UID: "u", Name: "c1", ProjectNumber: "1", Region: "z", Time: testTime},
		Epochs: []record.Epoch{
			{Number: 1, Claim: &claim1, Outcome: &record.Outcome{Abandoned: &record.Abandoned{By: "z-a.m1.17",
				Why: "gone"},
				Time: testTime}},
			{Number: 2, Claim: &claim2, Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: 0xc, MemberID: 0xa},
				Time: testTime},
				Closed: &record.Closed{By: "z-b.m2.18", Order: 2, Time: testTime},
				Stopped: []record.Stopped{{Place: placeA, Incarnation: 1, MemberID: 0xa, Term: 3, LastIndex: 9,
					CommitIndex: 8,
					Voters:      []record.MemberID{0xa}, Learners: []record.MemberID{0xb},
					Changes: []record.ConfigChange{{Index: 9, Type: "add-voter", MemberID: 0xb}},
					Time:    testTime}}},
			{Number: 3, Claim: &claim3},
		},
		Replicas: map[replica.Place][]record.Incarnation{
			placeA: {incarnation(placeA, 1, 2, true)},
			placeB: {incarnation(placeB, 1, 2, true), incarnation(placeB, 9, 2, false),
				onDisk2(incarnation(placeB, 10, 3, false))},
		},
		Marks: map[record.MemberID]record.Mark{
			0xa:                {MemberID: 0xa, Epoch: 2, Term: 3, Applied: 7, Time: testTime},
			0xfedcba9876543210: {MemberID: 0xfedcba9876543210, Epoch: 2, Term: 3, Applied: 1 << 60, Time: testTime},
		},
		Orders: []record.Order{
			{Number: 1, Time: testTime, By: "eva", Kind: record.OrderLeave, Place: &placeB,
				Done: &record.Done{By: "z-a.m1", Time: testTime, What: "left"}},
			{Number: 2, Time: testTime, By: "eva", Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 2,
				From: claim3.Source, Replica: placeB, Term: 3, Commit: 8},
				Accepted: &record.Accepted{By: "z-b.m2.18", Time: testTime}, Verdict: &record.Verdict{Closing: true,
					By:   "z-b.m2.18",
					Time: testTime},
				VMStops: map[string]record.VMStop{"101": {InstanceID: "101", By: "eva", Time: testTime}}},
		},
		Bundle:    2,
		Snapshots: []uint64{2},
	}
}

func incarnation(p replica.Place, k, epoch uint64, started bool) record.Incarnation {
	i := record.Incarnation{Place: p, Number: k, InstanceID: fmt.Sprint(100 + k), BootID: "b", Epoch: epoch,
		DiskID:    "d1",
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}, Time: testTime}
	if started {
		i.Started = &record.Started{Epoch: epoch, MemberID: 0xa, DiskID: "d1", Time: testTime}
	}
	return i
}

// onDisk2 learns its disk's id only after the incarnation was taken.
func onDisk2(i record.Incarnation) record.Incarnation {
	i.DiskID = "d2"
	return i
}

// write puts a View into a record through the Create methods.
func write(t testing.TB, s *Store, v record.View) {
	t.Helper()
	ctx := t.Context()
	made := func(_ any, won bool, err error) {
		t.Helper()
		if err != nil || !won {
			t.Fatalf("won %v, %v", won, err)
		}
	}
	if v.Inception != nil {
		made(s.CreateInception(ctx, *v.Inception))
	}
	for _, e := range v.Epochs {
		writeEpoch(t, s, e, made)
	}
	for _, incarnations := range v.Replicas {
		for _, i := range incarnations {
			if late := i.DiskID == "d2"; late {
				i.DiskID = ""
				made(s.NoteDisk(ctx, i.Place, i.Number, record.DataDisk{DiskID: "d2"}))
			}
			made(s.CreateIncarnation(ctx, i))
			if i.Started != nil {
				made(s.ConfirmIncarnation(ctx, i.Place, i.Number, *i.Started))
			}
		}
	}
	for _, m := range v.Marks {
		made(m, true, s.WriteMark(ctx, m))
	}
	for _, o := range v.Orders {
		got, err := s.CreateOrder(ctx, o)
		made(got, got.Number == o.Number, err)
		if o.Accepted != nil {
			made(s.AcceptOrder(ctx, o.Number, *o.Accepted))
		}
		if o.Verdict != nil {
			made(s.SettleOrder(ctx, o.Number, *o.Verdict))
		}
		for _, stop := range o.VMStops {
			made(s.NoteVMStop(ctx, o.Number, stop))
		}
		if o.Done != nil {
			made(s.CompleteOrder(ctx, o.Number, *o.Done))
		}
	}
	for g := range v.Bundle {
		made(s.CreateSealed(ctx, g+1, []byte("sealed")))
	}
	for _, e := range v.Snapshots {
		made(e, true, s.driver.create(ctx, fmt.Sprintf("snapshots/%d/9-x.db.zst", e), []byte("x")))
	}
}

func writeEpoch(t testing.TB, s *Store, e record.Epoch, made func(any, bool, error)) {
	t.Helper()
	ctx := t.Context()
	if e.Claim != nil {
		made(s.CreateClaim(ctx, e.Number, *e.Claim))
	}
	if e.Outcome != nil {
		made(s.CreateOutcome(ctx, e.Number, *e.Outcome))
	}
	if e.Closed != nil {
		made(s.CreateClosed(ctx, e.Number, *e.Closed))
	}
	for _, st := range e.Stopped {
		made(s.CreateStopped(ctx, e.Number, st))
	}
}

func checkView(t *testing.T, s *Store, want record.View) {
	t.Helper()
	got, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	written := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Written" }, cmp.Ignore())
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty(), written); diff != "" {
		t.Error(diff)
	}
}

// A listing has 10 before 2.
func TestAViewIsInTheOrderOfNumbers(t *testing.T) {
	m := newMemory()
	var want record.View
	for n := uint64(1); n <= 11; n++ {
		want.Epochs = append(want.Epochs, record.Epoch{Number: n})
		want.Orders = append(want.Orders, record.Order{Number: n})
		want.Snapshots = append(want.Snapshots, n)
		m.put(record.OutcomeKey(n), `{"abandoned":{"by":"x"}}`)
		m.put(record.OrderKey(n), fmt.Sprintf(`{"number":%d,"kind":"pause"}`, n))
		m.put(fmt.Sprintf("snapshots/%d/9-x.db.zst", n), "x")
		m.put(record.SealedKey(n), "sealed")
	}
	v, err := m.store().View(t.Context())
	if err != nil || v.Bundle != 11 || !slices.Equal(v.Snapshots, want.Snapshots) {
		t.Fatalf("bundle generation %d, snapshots of epochs %v, %v", v.Bundle, v.Snapshots, err)
	}
	for n := range want.Epochs {
		if v.Epochs[n].Number != want.Epochs[n].Number || v.Orders[n].Number != want.Orders[n].Number {
			t.Errorf("at %d: epoch %d, order %d", n, v.Epochs[n].Number, v.Orders[n].Number)
		}
	}
}

// Consoles make an empty object where somebody makes a folder.
func TestAFolderThatAConsoleMadeIsPassedOver(t *testing.T) {
	var objects []fakestorage.Object
	for _, key := range []string{"", "epochs/", "epochs/1/", "epochs/1/stopped/", "replicas/", "replicas/z-a.m1/",
		"orders/",
		"marks/", "bundle/", "snapshots/", "snapshots/1/", "checks/"} {
		attrs := fakestorage.ObjectAttrs{BucketName: "b", Name: "some/prefix/c1/" + key}
		objects = append(objects, fakestorage.Object{ObjectAttrs: attrs})
	}
	s := openStore(t, newBucket(t, objects...).url)
	checkView(t, s, record.View{})
	if findings := s.Check(t.Context(), ""); slices.ContainsFunc(findings,
		func(f record.Finding) bool { return f.Level == record.Fail }) {
		t.Errorf("the check fails: %v", findings)
	}
}

func TestViewIsWhatWasWritten(t *testing.T) {
	eachBucket(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		checkView(t, s, record.View{})
		write(t, s, fullView())
		checkView(t, s, fullView())
		checkView(t, s, fullView())
		checkView(t, openStore(t, url), fullView())
	})
}

// When a mark, or the end of a VM's stop, was written is the store's word, so that clocks of two writers are never
// compared.
func TestViewSaysWhenTheStoreWroteAMark(t *testing.T) {
	eachBucket(t, func(t *testing.T, url string) {
		s := openStore(t, url)
		write(t, s, fullView())
		before := time.Now().Add(-time.Minute)
		v, err := s.View(t.Context())
		if err != nil || v.Marks[0xa].Written.Before(before) || v.Orders[1].VMStops["101"].Written.Before(before) {
			t.Errorf("mark %v, stop %v, %v", v.Marks[0xa].Written, v.Orders[1].VMStops, err)
		}
	})
}

func TestAVerdictIsOneOfTwo(t *testing.T) {
	s := openStore(t, newBucket(t).url)
	for _, v := range []record.Verdict{{}, {Closing: true, Withdrawn: true}} {
		if _, _, err := s.SettleOrder(t.Context(), 1, v); err == nil {
			t.Errorf("%+v was written", v)
		}
	}
	if _, won, err := s.SettleOrder(t.Context(), 1, record.Verdict{Withdrawn: true, By: "eva"}); err != nil || !won {
		t.Fatal(won, err)
	}
	got, won, err := s.SettleOrder(t.Context(), 1, record.Verdict{Closing: true, By: "agent"})
	if err != nil || won || !got.Withdrawn {
		t.Errorf("%+v, won %v, %v: want the verdict that was there", got, won, err)
	}
}

func TestViewReadsPagesOfABucket(t *testing.T) {
	var objects []fakestorage.Object
	for n := 1; n <= 1005; n++ {
		objects = append(objects, fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: "b",
			Name: "some/prefix/c1/" + record.OrderKey(uint64(n))},
			Content: fmt.Appendf(nil, `{"number":%d,"kind":"resume"}`, n)})
	}
	b := newBucket(t, objects...)
	view, err := patient(openStore(t, b.url)).View(t.Context())
	if err != nil || len(view.Orders) != 1005 || view.Orders[1004].Number != 1005 {
		t.Fatalf("%d orders, %v", len(view.Orders), err)
	}
	if n := b.count("list"); n != 4 {
		t.Errorf("%d pages: want two listings of two pages", n)
	}
	// Each page has the tries of a call, however many there are.
	begin := b.count("list")
	b.mu.Lock()
	b.plan = func(doing string, n int) fault {
		if doing == "list" && (n-begin)%fastPace.tries != fastPace.tries-1 {
			return refused
		}
		return none
	}
	b.mu.Unlock()
	if view, err := patient(openStore(t, b.url)).View(t.Context()); err != nil || len(view.Orders) != 1005 {
		t.Errorf("with pages that come at the last try: %d orders, %v", len(view.Orders), err)
	}
}

func TestViewOfAnUnchangedRecordIsCheap(t *testing.T) {
	m := newMemory()
	s := m.store()
	write(t, s, fullView())
	checkView(t, s, fullView())
	m.counted()
	checkView(t, s, fullView())
	lists, reads := m.counted()
	if lists != 1 || len(reads) != 0 {
		t.Errorf("%d listings, reads %v: want one listing and nothing read", lists, reads)
	}
	if _, _, err := s.CreateOutcome(t.Context(), 3, record.Outcome{Formed: &record.Formed{ClusterID: 1,
		MemberID: 2}}); err != nil {
		t.Fatal(err)
	}
	m.counted()
	if v, err := s.View(t.Context()); err != nil || v.Epochs[2].Outcome == nil {
		t.Fatalf("%+v, %v: want the new outcome", v.Epochs, err)
	}
	lists, reads = m.counted()
	if lists != 2 || !slices.Equal(reads, []string{record.OutcomeKey(3)}) {
		t.Errorf("%d listings, reads %v: want two and the new outcome", lists, reads)
	}
}

// The marks of members that are long gone stay for ever. A View that read them all each time came to take longer than a
// poll of the leader may.
func TestAMarkIsReadAgainOnlyOnceItWasOverwritten(t *testing.T) {
	const dead = 1600
	m := newMemory()
	s := m.store()
	for id := record.MemberID(1); id <= dead; id++ {
		if err := s.WriteMark(t.Context(), record.Mark{MemberID: id, Epoch: 1, Applied: 5}); err != nil {
			t.Fatal(err)
		}
	}
	look := func(applied uint64, want ...string) {
		t.Helper()
		m.counted()
		v, err := s.View(t.Context())
		if err != nil || len(v.Marks) != dead || v.Marks[7].Applied != applied {
			t.Fatalf("%d marks, of 7 %+v, %v: want %d, applied %d", len(v.Marks), v.Marks[7], err, dead, applied)
		}
		if _, reads := m.counted(); want != nil && !slices.Equal(reads, want) || want == nil && len(reads) != 0 {
			t.Errorf("%d marks were read: want %v", len(reads), want)
		}
	}
	if v, err := s.View(t.Context()); err != nil || len(v.Marks) != dead {
		t.Fatalf("%d marks, %v", len(v.Marks), err)
	}
	look(5)
	if err := m.store().WriteMark(t.Context(), record.Mark{MemberID: 7, Epoch: 1, Applied: 6}); err != nil {
		t.Fatal(err)
	}
	look(6, record.MarkKey(7))
	look(6)
}

// A view has little time. The first one of a record that takes longer must not begin anew for ever.
func TestAViewGoesOnWhereOneThatFailedCameTo(t *testing.T) {
	m := newMemory()
	s := m.store()
	write(t, s, fullView())
	budget := 3
	var mu sync.Mutex
	m.onRead = func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if budget--; budget < 0 {
			return context.DeadlineExceeded
		}
		return nil
	}
	for tries := 1; ; tries++ {
		mu.Lock()
		budget = 3
		mu.Unlock()
		_, err := s.View(t.Context())
		if err == nil && tries > 1 {
			break
		}
		if err == nil || tries == 20 {
			t.Fatalf("try %d: %v: want several, and an end", tries, err)
		}
	}
	checkView(t, s, fullView())
}

func TestViewForgetsWhatIsGoneAndReadsAgainWhatWasReplaced(t *testing.T) {
	m := newMemory()
	s := m.store()
	write(t, s, fullView())
	checkView(t, s, fullView())
	want := fullView()
	m.remove(record.OutcomeKey(2))
	want.Epochs[1].Outcome = nil
	m.put(record.ClaimKey(3), strings.ReplaceAll(string(m.objects[record.ClaimKey(3)]), "t3", "t4"))
	want.Epochs[2].Claim.Token = "t4"
	checkView(t, s, want)
}

// TestViewIsOneMoment forms an epoch between two pages of a listing: one listing alone would name an epoch that it
// lacks.
func TestViewIsOneMoment(t *testing.T) {
	m := newMemory()
	s := m.store()
	m.midList = func(n int) {
		if n == 1 {
			write(t, m.store(), record.View{Epochs: fullView().Epochs[:1],
				Replicas: map[replica.Place][]record.Incarnation{placeA: {incarnation(placeA, 1, 1, true)}}})
			m.mu.Lock()
			m.lists = n
			m.mu.Unlock()
		}
	}
	v, err := s.View(t.Context())
	if err != nil || len(v.Epochs) != 1 || len(v.Replicas[placeA]) != 1 {
		t.Fatalf("%d epochs, %d incarnations, %v: want both or neither", len(v.Epochs), len(v.Replicas[placeA]), err)
	}
}

// That nothing is there is concluded as everything else is: from two listings in a row.
func TestAnEmptyRecordIsListedTwice(t *testing.T) {
	m := newMemory()
	if _, err := m.store().View(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lists, _ := m.counted(); lists != 2 {
		t.Errorf("%d listings: want 2", lists)
	}
}

func TestViewGivesUpOnARecordThatNeverRests(t *testing.T) {
	m := newMemory()
	m.onList = func(n int) { m.put(record.SealedKey(uint64(n)), "x") }
	if _, err := m.store().View(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "it changed during each of 10 listings") {
		t.Fatal(err)
	}
}

func TestMarksDoNotDisturbTheListing(t *testing.T) {
	m := newMemory()
	write(t, m.store(), fullView())
	m.counted()
	m.onList = func(n int) {
		m.put(record.MarkKey(1), fmt.Sprintf(`{"memberID":"1","applied":%d}`, n))
		m.put(record.ProbeKey(fmt.Sprint(n)), "{}") // somebody runs a check
	}
	v, err := m.store().View(t.Context())
	if lists, _ := m.counted(); err != nil || v.Marks[1].Applied != 2 || lists != 2 {
		t.Fatalf("mark %+v, %d listings, %v", v.Marks[1], lists, err)
	}
}

func TestOneUnreadableObjectFailsTheView(t *testing.T) {
	m := newMemory()
	write(t, m.store(), fullView())
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if k := record.ParseKey(key).Kind; k == record.SealedObject || k == record.SnapshotObject {
			continue // a View reads only its name
		}
		for name, cause := range map[string]error{"injected": errors.New("injected"),
			"absent though listed": errAbsent} {
			m.onRead = func(read string) error {
				if read == key {
					return cause
				}
				return nil
			}
			v, err := m.store().View(t.Context())
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), key) || !cmp.Equal(v, record.View{}) {
				t.Errorf("%s, %s: %v: want an error that names it", key, name, err)
			}
		}
	}
}

func TestOneUndecodableObjectFailsTheView(t *testing.T) {
	for key, contents := range map[string][]string{
		record.InceptionKey: {"", "{", "null", "{}", `{"uid":"u"}`, `[]`, `{"uid":"u","name":"c1"} x`},
		record.ClaimKey(2): {"", `{"token":"x"}`,
			`{"token":"","seeder":{"zone":"z","name":"n","instanceID":"1"},"maxLearners":4,"source":{"kind":"empty"}}`,
			`{"token":"x","seeder":{"zone":"z","name":"n","instanceID":"1"},"maxLearners":4,"source":{"kind":"other"}}`,
			`{"token":"x","seeder":{"zone":"z","name":"n\tm","instanceID":"1"},"maxLearners":4,"source":{"kind":"empty"}}`},
		record.OutcomeKey(2): {"", "{}", `{"formed":{"clusterID":"1","memberID":"1"},"abandoned":{"by":"x"}}`,
			`{"formed":{}}`, `{"formed":{"clusterID":"xyz","memberID":"1"}}`},
		record.ClosedKey(2): {"", "[]"},
		record.StoppedKey(2, placeA, 1): {"", "{}", `{"zone":"z-b","name":"m2","incarnation":1}`,
			`{"zone":"z-a","name":"m1","incarnation":2}`},
		record.IncarnationKey(placeA, 1): {"", "{}",
			`{"zone":"z-a","name":"m1","number":2,"instanceID":"1","bootID":"b"}`,
			`{"zone":"z-a","name":"m1","number":1,"bootID":"b"}`,
			`{"zone":"z-a","name":"m1\tm2","number":1,"instanceID":"1","bootID":"b"}`,
			`{"zone":"z-a","name":"m1","number":1,"instanceID":"1","bootID":"b","addresses":["fe80::1%x\n10.0.0.1 m2"]}`,
			`{"zone":"z-a","name":"m1","number":1,"instanceID":"1","bootID":"b","addresses":[""]}`},
		record.StartedKey(placeA, 1): {"", "{}"},
		record.MarkKey(0xa):          {"", "{}", `{"memberID":"b"}`, `{"memberID":10}`},
		record.OrderKey(1): {"", "{}", `{"number":2,"kind":"pause"}`, `{"number":1}`, `{"number":-1,"kind":"pause"}`,
			`{"number":1,"kind":"leave","place":{"zone":"z-a","name":"m1\tm2"}}`,
			`{"number":1,"kind":"leave","place":{}}`,
			`{"number":1,"kind":"restore","restore":{"ends":1,"replica":{"zone":"z-a","name":"M1"}}}`},
		record.DoneKey(1): {"", "1"},
	} {
		for _, content := range contents {
			m := newMemory()
			write(t, m.store(), fullView())
			s := m.store()
			checkView(t, s, fullView())
			m.put(key, content)
			if _, err := s.View(t.Context()); err == nil || !strings.Contains(err.Error(), m.where(key)) {
				t.Errorf("%s holding %q: %v: want an error that names it", key, content, err)
			}
		}
	}
}

func TestViewPassesOverWhatIsNotItsOwn(t *testing.T) {
	m := newMemory()
	write(t, m.store(), fullView())
	for _, key := range []string{"readme.txt", "epochs/01/claim.json", "epochs/0/claim.json", "orders/x.json",
		"checks/x.json", "other/inception.json"} {
		m.put(key, "whatever")
	}
	m.put(record.ClaimKey(2), strings.Replace(string(m.objects[record.ClaimKey(2)]), "{",
		`{"aFieldOfANewerVersion": 1,`, 1))
	checkView(t, m.store(), fullView())
}

func TestViewShowsDamageThatADecisionNeeds(t *testing.T) {
	m := newMemory()
	write(t, m.store(), fullView())
	m.remove(record.ClaimKey(2))
	m.remove(record.OrderKey(1))
	want := fullView()
	want.Epochs[1].Claim = nil
	want.Orders = want.Orders[1:]
	checkView(t, m.store(), want)
}

func TestViewRefusesAConfirmationWithoutIncarnation(t *testing.T) {
	m := newMemory()
	write(t, m.store(), fullView())
	m.remove(record.IncarnationKey(placeA, 1))
	if _, err := m.store().View(t.Context()); err == nil ||
		!strings.Contains(err.Error(), record.IncarnationKey(placeA, 1)+" is lost") {
		t.Fatal(err)
	}
}

func TestViewRefusesAnObjectInAFoldersPlace(t *testing.T) {
	m := newMemory()
	m.put("epochs", "x")
	if _, err := m.store().View(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "memory:epochs is an object where") {
		t.Fatal(err)
	}
}

func TestCreateRefusesWhatNoViewCouldRead(t *testing.T) {
	m := newMemory()
	s, ctx := m.store(), t.Context()
	for name, create := range map[string]func() error{
		"cluster": func() error {
			_, _,
				err := s.CreateInception(ctx, record.Inception{UID: "u", Name: "c2"})
			return err
		},
		"uid":         func() error { _, _, err := s.CreateInception(ctx, record.Inception{Name: "c1"}); return err },
		"token":       func() error { _, _, err := s.CreateClaim(ctx, 1, testClaim("m1", "")); return err },
		"from 1 to":   func() error { _, _, err := s.CreateClaim(ctx, 0, testClaim("m1", "t")); return err },
		"exactly one": func() error { _, _, err := s.CreateOutcome(ctx, 1, record.Outcome{}); return err },
		"<zone>.<name>": func() error {
			_, _, err := s.CreateIncarnation(ctx, incarnation(replica.Place{Zone: "../z", Name: "m"}, 1, 1, false))
			return err
		},
		"addresses has": func() error {
			i := incarnation(placeA, 1, 1, false)
			i.Addresses = []netip.Addr{netip.MustParseAddr("fe80::1%eth0")}
			_, _, err := s.CreateIncarnation(ctx, i)
			return err
		},
		"seeder is zone": func() error {
			c := testClaim("m\t1", "t")
			_, _, err := s.CreateClaim(ctx, 1, c)
			return err
		},
		"place is zone": func() error {
			_, err := s.CreateOrder(ctx, record.Order{Kind: record.OrderLeave,
				Place: &replica.Place{Zone: "z-a", Name: "m1 m2"}})
			return err
		},
		"instanceID": func() error {
			_, _, err := s.CreateIncarnation(ctx,
				record.Incarnation{Place: placeA, Number: 1})
			return err
		},
		"epoch":     func() error { _, _, err := s.ConfirmIncarnation(ctx, placeA, 1, record.Started{}); return err },
		"kind":      func() error { _, err := s.CreateOrder(ctx, record.Order{}); return err },
		"no object": func() error { return s.WriteMark(ctx, record.Mark{}) },
		"not empty": func() error { _, _, err := s.CreateSealed(ctx, 1, nil); return err },
	} {
		if err := create(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: want an error that speaks of %q", err, name)
		}
	}
	if len(m.objects) != 0 {
		t.Errorf("%d objects were written", len(m.objects))
	}
}
