package etcdtest

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Record is the record of all replicas of a test, in memory. Every create is write-once.
type Record struct {
	// Mu guards the fields below it, which a test may change.
	Mu   sync.Mutex
	Seen record.View
	// Err: every call fails with it. Silent: a View waits until its caller gives up.
	Err    error
	Silent bool
	Marked []record.Mark
	// Stored are the snapshots; nil: one, OneSnapshot.
	Stored []record.Snapshot
}

// NewRecord is the record of a cluster with this name that was begun, and no more.
func NewRecord(cluster string) *Record {
	return &Record{Seen: record.View{
		Inception: &record.Inception{UID: "uid", Name: cluster, ProjectNumber: "7", Region: "us-central1"},
		Replicas:  map[replica.Place][]record.Incarnation{}, Marks: map[record.MemberID]record.Mark{},
	}}
}

// Change changes it, as another replica or an operator would.
func (r *Record) Change(f func(v *record.View)) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	f(&r.Seen)
}

// Fail lets every call fail; nil: no more.
func (r *Record) Fail(err error) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.Err = err
}

// Copied is a view that later writes do not change.
func (r *Record) Copied() (record.View, error) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	v := r.Seen
	v.Epochs, v.Orders = slices.Clone(v.Epochs), slices.Clone(v.Orders)
	v.Replicas = map[replica.Place][]record.Incarnation{}
	for p, is := range r.Seen.Replicas {
		v.Replicas[p] = slices.Clone(is)
	}
	return v, r.Err
}

func (r *Record) epoch(n uint64) *record.Epoch {
	for i := range r.Seen.Epochs {
		if r.Seen.Epochs[i].Number == n {
			return &r.Seen.Epochs[i]
		}
	}
	return nil
}

// Formed is how an epoch was formed; nil: it was not.
func (r *Record) Formed(n uint64) *record.Formed {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if e := r.epoch(n); e != nil && e.Outcome != nil {
		return e.Outcome.Formed
	}
	return nil
}

// ClaimedBy: an epoch is claimed with the token by the place.
func (r *Record) ClaimedBy(n uint64, token string, p replica.Place) bool {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	e := r.epoch(n)
	return e != nil && e.Claim.Token == token && e.Claim.Seeder.Place == p
}

// Incarnations are those of a place.
func (r *Record) Incarnations(p replica.Place) []record.Incarnation {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return slices.Clone(r.Seen.Replicas[p])
}

// Incarnation is one of a place; nil: there is none.
func (r *Record) Incarnation(p replica.Place, k uint64) *record.Incarnation {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for _, i := range r.Seen.Replicas[p] {
		if i.Number == k {
			return &i
		}
	}
	return nil
}

// Reached is the record as one replica reaches it: each write goes through Write, which does it, or fails, or never
// returns. It is an etcdmember.Record.
type Reached struct {
	*Record
	Write func(name string, do func() error) error
}

// once makes a write-once create of a lookup and a put.
func once[T any](r Reached, name string, find func() *T, put func()) (got T, won bool, err error) {
	err = r.Write(name, func() error {
		store := r.Record
		store.Mu.Lock()
		defer store.Mu.Unlock()
		if store.Err != nil {
			return store.Err
		}
		if find() == nil {
			put()
			won = true
		}
		got = *find()
		return nil
	})
	return got, won, err
}

// View is of etcdmember.Record.
func (r Reached) View(ctx context.Context) (record.View, error) {
	if r.Silent {
		<-ctx.Done()
		return record.View{}, context.Cause(ctx)
	}
	return r.Copied()
}

// CreateClaim is of etcdmember.Record.
func (r Reached) CreateClaim(_ context.Context, e uint64, c record.Claim) (record.Claim, bool, error) {
	s := r.Record
	return once(r, "claim", func() *record.Claim {
		if found := s.epoch(e); found != nil {
			return found.Claim
		}
		return nil
	}, func() { s.Seen.Epochs = append(s.Seen.Epochs, record.Epoch{Number: e, Claim: &c}) })
}

// CreateOutcome is of etcdmember.Record.
func (r Reached) CreateOutcome(_ context.Context, e uint64, o record.Outcome) (record.Outcome, bool, error) {
	s := r.Record
	return once(r, "outcome", func() *record.Outcome { return s.epoch(e).Outcome }, func() { s.epoch(e).Outcome = &o })
}

// CreateStopped is of etcdmember.Record.
func (r Reached) CreateStopped(_ context.Context, e uint64, st record.Stopped) (record.Stopped, bool, error) {
	s := r.Record
	return once(r, "stopped", func() *record.Stopped {
		for _, found := range s.epoch(e).Stopped {
			if found.Place == st.Place && found.Incarnation == st.Incarnation {
				return &found
			}
		}
		return nil
	}, func() { s.epoch(e).Stopped = append(s.epoch(e).Stopped, st) })
}

// CreateIncarnation is of etcdmember.Record.
func (r Reached) CreateIncarnation(_ context.Context, i record.Incarnation) (record.Incarnation, bool, error) {
	s := r.Record
	return once(r, "incarnation", func() *record.Incarnation {
		for _, found := range s.Seen.Replicas[i.Place] {
			if found.Number == i.Number {
				return &found
			}
		}
		return nil
	}, func() {
		i.Written = time.Now()
		s.Seen.Replicas[i.Place] = append(s.Seen.Replicas[i.Place], i)
	})
}

// ConfirmIncarnation is of etcdmember.Record.
func (r Reached) ConfirmIncarnation(_ context.Context, p replica.Place, k uint64, st record.Started) (record.Started,
	bool, error) {
	s := r.Record
	at := func() *record.Incarnation {
		n := slices.IndexFunc(s.Seen.Replicas[p], func(i record.Incarnation) bool { return i.Number == k })
		return &s.Seen.Replicas[p][n]
	}
	return once(r, "confirm", func() *record.Started { return at().Started }, func() { at().Started = &st })
}

// NoteDisk completes the incarnation as View does: what it says itself comes first.
func (r Reached) NoteDisk(_ context.Context, p replica.Place, k uint64, d record.DataDisk) (record.DataDisk, bool,
	error) {
	s := r.Record
	at := func() *record.Incarnation {
		n := slices.IndexFunc(s.Seen.Replicas[p], func(i record.Incarnation) bool { return i.Number == k })
		return &s.Seen.Replicas[p][n]
	}
	noted := func() *record.DataDisk {
		if id := at().DiskID; id != "" {
			return &record.DataDisk{DiskID: id}
		}
		return nil
	}
	return once(r, "disk", noted, func() { at().DiskID = d.DiskID })
}

// CompleteOrder is of etcdmember.Record.
func (r Reached) CompleteOrder(_ context.Context, n uint64, d record.Done) (record.Done, bool, error) {
	return once(r, "done", func() *record.Done { return r.order(n).Done }, func() { r.order(n).Done = &d })
}

// SettleOrder is of etcdmember.Record.
func (r Reached) SettleOrder(_ context.Context, n uint64, v record.Verdict) (record.Verdict, bool, error) {
	o := &r.Seen.Orders[n-1]
	return once(r, "settle", func() *record.Verdict { return o.Verdict }, func() { o.Verdict = &v })
}

// AcceptOrder is of etcdmember.Record.
func (r Reached) AcceptOrder(_ context.Context, n uint64, a record.Accepted) (record.Accepted, bool, error) {
	return once(r, "accepted", func() *record.Accepted { return r.order(n).Accepted },
		func() { r.order(n).Accepted = &a })
}

func (r Reached) order(n uint64) *record.Order {
	for i := range r.Seen.Orders {
		if r.Seen.Orders[i].Number == n {
			return &r.Seen.Orders[i]
		}
	}
	return &record.Order{}
}

// WriteMark is of etcdmember.Record.
func (r Reached) WriteMark(_ context.Context, m record.Mark) error {
	r.Record.Mu.Lock()
	defer r.Record.Mu.Unlock()
	r.Marked = append(r.Marked, m)
	return r.Err
}

// CreateClosed is of etcdmember.Record.
func (r Reached) CreateClosed(_ context.Context, e uint64, c record.Closed) (record.Closed, bool, error) {
	s := r.Record
	return once(r, "closed", func() *record.Closed { return s.epoch(e).Closed }, func() { s.epoch(e).Closed = &c })
}

// CreateOrder is of etcdmember.Record.
func (r Reached) CreateOrder(_ context.Context, o record.Order) (record.Order, error) {
	err := r.Write("order", func() error {
		s := r.Record
		s.Mu.Lock()
		defer s.Mu.Unlock()
		o.Number = uint64(len(s.Seen.Orders) + 1)
		s.Seen.Orders = append(s.Seen.Orders, o)
		return s.Err
	})
	return o, err
}

// OneSnapshot is the snapshot that is there unless a test has others.
const OneSnapshot = "1/500-20261121T010203Z"

// Snapshots is of etcdmember.Record.
func (r Reached) Snapshots(context.Context) ([]record.Snapshot, error) {
	r.Record.Mu.Lock()
	defer r.Record.Mu.Unlock()
	if r.Err != nil || r.Stored != nil {
		return r.Stored, r.Err
	}
	return []record.Snapshot{{Name: OneSnapshot, Epoch: 1, Revision: 500, Size: 11}}, nil
}

// ReadSnapshot is of etcdmember.Record.
func (r Reached) ReadSnapshot(_ context.Context, name string, to io.Writer) (record.Snapshot, error) {
	if name != OneSnapshot {
		return record.Snapshot{}, errors.New("no such snapshot")
	}
	_, err := io.WriteString(to, "a snapshot\n")
	return record.Snapshot{Name: name}, err
}
