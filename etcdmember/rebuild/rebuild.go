// Package rebuild finds what a record has lost, by what the replicas' data disks and members say of it. Testify reads
// one replica, on that machine; Find is pure, and compares what all say; Lost.Create brings one object back. Nothing
// that the record still has is replaced.
package rebuild

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Result is what brings a record back. Nothing in it replaces an object that exists.
type Result struct {
	// Lost are the objects to create, in this order: until the last of them is there the record stays visibly damaged,
	// and no agent does more than go on with what runs.
	Lost []Lost
	// Notes are what a person has to know in addition, as sentences.
	Notes []string
}

// Lost is one object that is missing and what it was.
type Lost struct {
	// Key is its name in the record, Why what proves it.
	Key, Why string
	// Object is a record.Inception, Claim, Outcome, Incarnation or Started; the fields that its place in the record
	// needs follow it.
	Object any
	Epoch  uint64
	Place  replica.Place
	Number uint64
}

// Wish is what a person adds to the testimonies.
type Wish struct {
	// Cluster is the configured name.
	Cluster string
	// ProjectNumber is for an inception that no testimony knows it of.
	ProjectNumber string
	// Without are members whose disks are lost for good, or are to say their part later.
	Without []record.MemberID
	// Seeder is the place that seeded the epoch, where it is none of those that are known; nil: not said. It is
	// checked.
	Seeder *replica.Place
	Now    time.Time
	// Replicas is how many the document names.
	Replicas int
}

// Find finds the objects that a record has lost, by what the replicas' disks and members say. It is pure. An error
// names every contradiction, and means that nothing may be created: two tokens, two histories, a disk that has seen
// more than the others can tell. With what it returns in the record, no agent whose word was heard finds the record
// lost or rolled back.
func Find(r record.Remains, said []Testimony, w Wish) (Result, error) {
	b := rebuilder{Remains: r, wish: w}
	for _, t := range said {
		b.hear(t)
	}
	b.agreeOnCluster()
	b.findEpoch()
	b.hearTheAbsent()
	if err := errors.Join(b.faults...); err != nil {
		return Result{}, err
	}
	b.agreeOnEpoch()
	b.findSeeder()
	b.findIncarnations()
	b.findOrphans()
	b.accountForMembers()
	if err := errors.Join(b.faults...); err != nil {
		return Result{}, err
	}
	b.findOutcomeAndClaim()
	b.findInception()
	b.tell()
	b.prove()
	if err := errors.Join(b.faults...); err != nil {
		return Result{}, err
	}
	return Result{Lost: b.lost, Notes: b.notes}, nil
}

// rebuilder is one run of Rebuild; its methods are the steps, in order.
type rebuilder struct {
	record.Remains
	wish Wish

	said   []Testimony // those that say something, one a place
	lost   []Lost
	notes  []string
	faults []error

	uid   string
	epoch uint64 // the newest that was formed
	token string
	// clusterID is etcd's; seeder and first are the place and the id of the epoch's first member.
	clusterID record.MemberID
	seeder    replica.Place
	first     record.MemberID
}

func (b *rebuilder) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Errorf(format, args...))
}

func (b *rebuilder) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// hear takes one testimony, or says why it counts for nothing.
func (b *rebuilder) hear(t Testimony) {
	switch {
	case t.Format != testimonyFormat:
		b.fault("%s: its format is %d, this quorate reads %d: collect with the same version", t, t.Format,
			testimonyFormat)
	case t.Cluster != "" && t.Cluster != b.wish.Cluster:
		b.fault("%s is of cluster %q, the document is of %q", t, t.Cluster, b.wish.Cluster)
	case t.silent():
		b.note("A disk is empty, or its agent.json is lost: nothing can be taken from it.")
	case t.Agent.MemberID != 0 && t.MemberID != 0 && t.Agent.MemberID != t.MemberID:
		b.fault("%s: its agent.json names member %s, and its etcd is member %s", t, t.Agent.MemberID, t.MemberID)
	case slices.ContainsFunc(b.said, func(o Testimony) bool { return o.Agent.Replica == t.Agent.Replica }):
		b.fault("%s is there twice: give one file of each replica, of the disk that it uses now", t)
	default:
		b.said = append(b.said, t)
	}
}

// agreeOnCluster: all are of one cluster, in one region.
func (b *rebuilder) agreeOnCluster() {
	who := "inception.json"
	if b.Inception != nil {
		b.uid = b.Inception.UID
	}
	for _, t := range b.said {
		uid := t.Agent.ClusterUID
		switch {
		case uid == "":
		case b.uid == "":
			b.uid, who = uid, t.String()
		case uid != b.uid:
			b.fault("%s belongs to the cluster with uid %s, %s says %s: these are two clusters", t, uid, who, b.uid)
		}
		if first := b.said[0]; replica.RegionOf(t.Agent.Replica.Zone) != replica.RegionOf(first.Agent.Replica.Zone) {
			b.fault("%s and %s are in two regions: a cluster has one", first, t)
		}
	}
}

// findEpoch finds the newest epoch that a member ran in. Whatever names a newer one forbids to go on: somebody may have
// formed it.
func (b *rebuilder) findEpoch() {
	for _, t := range b.said {
		if t.settled() {
			b.epoch = max(b.epoch, t.Agent.Epoch)
		}
	}
	if b.epoch == 0 {
		b.fault("no disk here has a member that ever ran: nothing proves what the record held")
		return
	}
	for _, t := range b.said {
		if n := max(t.Agent.Epoch, t.Agent.NewestEpoch); n > b.epoch {
			b.fault("%s has seen epoch %d, and no disk here has a member that ran in it: give the file of the "+
				"replica that formed it", t, n)
		}
	}
	for n, object := range b.above() {
		b.fault("%s is of epoch %d, and the newest of these disks is of epoch %d: the record knows more than "+
			"they do", object, n, b.epoch)
	}
}

// livingMark is how young a mark is whose member runs: it writes one each MarkPeriod while there are writes.
const livingMark = 4 * table.MarkPeriod

// hearTheAbsent refuses to take a disk for lost whose member has just spoken. It would find another instance in its
// place, and stop.
func (b *rebuilder) hearTheAbsent() {
	for _, id := range b.wish.Without {
		if m, ok := b.Marks[id]; ok && b.wish.Now.Sub(m.Time) < livingMark {
			b.fault("--without %s: its member wrote a mark %s ago, so it seems to run: give its file, or wait two "+
				"minutes", id, b.wish.Now.Sub(m.Time).Round(time.Second))
		}
	}
}

// above are the epochs that the record's objects name and that no disk here knows, each with one of them.
func (b *rebuilder) above() map[uint64]string {
	out := map[uint64]string{}
	for _, o := range b.Orphans {
		if o.Started.Epoch > b.epoch {
			out[o.Started.Epoch] = fmt.Sprintf("replicas/%s/%d.started.json", o.Place, o.Number)
		}
	}
	for _, m := range b.Mentions(func(n uint64) bool { return n > b.epoch }) {
		out[m.Epoch] = m.Key
	}
	if e := b.Newest(); record.NumberOf(e) > b.epoch {
		out[e.Number] = fmt.Sprintf("epochs/%d", e.Number)
	}
	return out
}

// tell adds what cannot be brought back from disks.
func (b *rebuilder) tell() {
	for _, t := range b.said {
		if t.Agent.Epoch != 0 && t.Agent.Epoch < b.epoch {
			b.note("%s is of epoch %d: when its VM boots it archives that directory and joins.", t, t.Agent.Epoch)
		}
		if t.Problem != "" {
			b.note("%s: its directory cannot be used (%s): only its agent.json was heard.", t, t.Problem)
		}
	}
	if n := len(b.said) + len(b.wish.Without); n < b.wish.Replicas && b.forms() {
		b.note("You speak for %d of %d replicas, and by these disks epoch %d is the newest. A disk that nobody has "+
			"asked may have a newer one: with this record "+
			"the members here would serve an older history next to it. Say yes only if there is no other disk.", n,
			b.wish.Replicas, b.epoch)
	}
	if b.Bundle == 0 {
		b.note("The record has no bundle: without it no certificate can be issued and no replica can join. Import " +
			"the escrow: quorate bundle import.")
	}
	if len(b.lost) > 0 && b.Inception == nil {
		b.note("Orders and marks are not brought back: give a pause, a leave or a number of replicas again. The " +
			"agents write the marks by themselves.")
	}
}

// forms: the outcome is among what is lost, so nothing but the disks says which epoch is the newest.
func (b *rebuilder) forms() bool {
	return slices.ContainsFunc(b.lost, func(l Lost) bool { _, is := l.Object.(record.Outcome); return is })
}

// prove examines the record as it will be, the way each agent will.
func (b *rebuilder) prove() {
	v := b.after()
	for _, t := range b.said {
		h := table.HistoryOf(table.Facts{Record: v, Agent: t.Agent, Me: replica.Identity{Place: t.Agent.Replica}})
		if d := h.Damages(); len(d) > 0 && v.Inception != nil {
			b.fault("the record would still be damaged for %s: %s", t, d[0])
		}
		if h.Ahead() {
			b.fault("%s would still have seen more than the record", t)
		}
	}
}

// after is the record with all that was lost.
func (b *rebuilder) after() record.View {
	v := b.View
	v.Epochs = slices.Clone(v.Epochs)
	places := map[replica.Place][]record.Incarnation{}
	for p, list := range v.Replicas {
		places[p] = slices.Clone(list)
	}
	for _, l := range b.lost {
		switch o := l.Object.(type) {
		case record.Inception:
			v.Inception = &o
		case record.Claim:
			b.epochOf(&v).Claim = &o
		case record.Outcome:
			b.epochOf(&v).Outcome = &o
		case record.Incarnation:
			for _, orphan := range b.Orphans {
				if orphan.Place == o.Place && orphan.Number == o.Number {
					o.Started = &orphan.Started
				}
			}
			places[o.Place] = append(places[o.Place], o)
		case record.Started:
			for i := range places[l.Place] {
				if places[l.Place][i].Number == l.Number {
					places[l.Place][i].Started = &o
				}
			}
		}
	}
	for p := range places {
		slices.SortFunc(places[p], func(x, y record.Incarnation) int { return int(int64(x.Number) - int64(y.Number)) })
	}
	v.Replicas = places
	return v
}

// epochOf is the epoch that is rebuilt, added where the record lacks it.
func (b *rebuilder) epochOf(v *record.View) *record.Epoch {
	if e := v.Epoch(b.epoch); e != nil {
		return e
	}
	v.Epochs = append(v.Epochs, record.Epoch{Number: b.epoch})
	return &v.Epochs[len(v.Epochs)-1]
}
