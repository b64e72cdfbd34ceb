package order

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Wish is what an operator says of a restore, as the flags of `quorate restore` have it.
type Wish struct {
	// From is snapshot, snapshot=NAME or directory=REPLICA; empty: the best there is. On is the replica that restores a
	// snapshot; empty: the one that is fit.
	From, On string
	// Exact: this very directory, also where another replica stops with a longer log.
	Exact bool
	// EndsLiving: the epoch is to end although its members have served within the last minute.
	EndsLiving bool
	// Silent are the instances that run nothing any more, as the operator says.
	Silent []string
}

// Check refuses what cannot be meant, whatever the record holds.
func (w Wish) Check() error {
	kind, name, named := strings.Cut(w.From, "=")
	switch {
	case !slices.Contains([]string{"", "snapshot", "directory"}, kind) || named && name == "":
		return Refuse("--from %q: want snapshot, snapshot=NAME or directory=REPLICA", w.From)
	case kind == "directory" && !named:
		return Refuse("--from directory: which replica's? directory=REPLICA")
	case kind == "directory" && w.On != "":
		return Refuse("--on: a directory is restored by the replica whose it is")
	case kind == "snapshot" && w.Exact:
		return Refuse("--exact: it is about the directories of the others; a snapshot is used as it is")
	}
	return nil
}

// ofANewOrder names the flags that say something of an order that is to be written.
func (w Wish) ofANewOrder() string {
	var given []string
	if w.On != "" {
		given = append(given, "--on")
	}
	if w.Exact {
		given = append(given, "--exact")
	}
	if w.EndsLiving {
		given = append(given, "--end-living-cluster")
	}
	return strings.Join(given, ", ")
}

// Choice is what a restore will be made of.
type Choice struct {
	Order record.RestoreOrder
	// Directory or Snapshot is the source; both are nil where an order is given again.
	Directory *Candidate
	Snapshot  *record.Snapshot
	// Risk says what it means that instances count as silent because the operator says so, as sentences; empty: none
	// does.
	Risk string
}

// Choose finds the source that the wish names, or the best that the record knows of.
func (r Restore) Choose(w Wish) (Choice, error) {
	c, err := r.chooseSource(w)
	if err != nil {
		return c, err
	}
	c.Order.Silent = w.Silent
	c.Risk, err = r.silentRisk(w.Silent, c.Order.Replica)
	return c, err
}

func (r Restore) chooseSource(w Wish) (Choice, error) {
	kind, name, _ := strings.Cut(w.From, "=")
	switch kind {
	case "":
		return r.best(w)
	case "snapshot":
		return r.fromSnapshot(name, w.On)
	}
	p, err := findPlace(r.Record, name)
	if err != nil {
		return Choice{}, err
	}
	for _, c := range r.Candidates() {
		if c.Place == p {
			return r.fromDirectory(c, w.Exact), nil
		}
	}
	return Choice{}, Refuse("replica %s never had a member in epoch %d", p, r.Ends.Number)
}

// best is a disk that is whole by its replica's own report; or the only one of which nothing bad is known; or, where
// every place stands on another, empty disk, the newest snapshot.
func (r Restore) best(w Wish) (Choice, error) {
	left := r.notLost()
	switch {
	case len(left) == 0 && w.Exact:
		return Choice{}, Refuse("--exact: no disk of epoch %d is known to survive, and a snapshot is used as it is: "+
			"leave it out", r.Ends.Number)
	case len(left) == 0:
		return r.fromSnapshot("", w.On)
	case !left[0].Whole() && len(left) > 1:
		return Choice{}, Refuse("the record does not say whose disks survive: name one that does (%s), or --from "+
			"snapshot", directories(left))
	case w.On != "":
		return Choice{}, Refuse("--on %s: the best there is to restore from is the directory of %s, and a directory "+
			"is restored by the replica whose it is: for that leave --on out or say %s; for a snapshot say --from "+
			"snapshot, too", w.On, left[0].Place, directories(left[:1]))
	}
	return r.fromDirectory(left[0], w.Exact), nil
}

// notLost are the candidates of which nothing bad is known.
func (r Restore) notLost() []Candidate {
	return slices.DeleteFunc(r.Candidates(), func(c Candidate) bool { return c.Emptied != nil })
}

// directories says how candidates are named on the command line.
func directories(list []Candidate) string {
	var names []string
	for _, c := range list {
		names = append(names, "--from directory="+c.Place.String())
	}
	return strings.Join(names, ", ")
}

func (r Restore) fromDirectory(c Candidate, exact bool) Choice {
	o := record.RestoreOrder{Ends: r.Ends.Number, Replica: c.Place, Newest: !exact,
		From: record.Source{Kind: record.SourceDirectory, MemberID: c.Incarnation.Started.MemberID,
			DiskID: c.Incarnation.Disk()}}
	o.Term, o.Commit = c.Reaches()
	return Choice{Order: o, Directory: &c}
}

func (r Restore) fromSnapshot(name, on string) (Choice, error) {
	var s *record.Snapshot
	for i := range r.Snapshots {
		// The newest by its revision, which is the history's own: its time is by the clock of the VM that saved it.
		if x := &r.Snapshots[i]; name == x.Name || name == "" && x.Epoch == r.Ends.Number &&
			(s == nil || x.Revision >= s.Revision) {
			s = x
		}
	}
	switch {
	case s == nil && name != "":
		return Choice{}, Refuse("there is no snapshot %s; 'quorate snapshot list' names those that there are", name)
	case s == nil:
		return Choice{}, r.noSnapshot()
	}
	p, err := r.restorer(on)
	if err != nil {
		return Choice{}, err
	}
	return Choice{Snapshot: s, Order: record.RestoreOrder{Ends: r.Ends.Number, Replica: p,
		From: record.Source{Kind: record.SourceSnapshot, Snapshot: s.Name}}}, nil
}

// noSnapshot says what else there is where the epoch has no snapshot: disks that may be whole, or an older epoch's
// snapshot.
func (r Restore) noSnapshot() error {
	if left := r.notLost(); len(left) > 0 {
		return Refuse("there is no snapshot of epoch %d, but disks that are not known to be lost: name one that "+
			"survives (%s)", r.Ends.Number, directories(left))
	}
	if len(r.Snapshots) > 0 {
		older := slices.MaxFunc(r.Snapshots, func(a, b record.Snapshot) int {
			return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Revision, b.Revision))
		})
		return Refuse("there is no snapshot of epoch %d, and no disk of it is known to be whole. The newest "+
			"snapshot of an older epoch is --from snapshot=%s: all of epoch %d is lost with it",
			r.Ends.Number, older.Name, r.Ends.Number)
	}
	return record.AtFault(fmt.Errorf("there is no snapshot, and no disk of epoch %d is known to be whole: there is "+
		"nothing to restore from; nothing was written", r.Ends.Number))
}

// restorer is the replica that restores a snapshot: the named one, the only one, or the one that wrote last that it
// stopped, or that it is empty.
func (r Restore) restorer(on string) (replica.Place, error) {
	if on != "" {
		return findPlace(r.Record, on)
	}
	known := r.Record.Places()
	if len(known) == 1 {
		return known[0], nil
	}
	var last replica.Place
	var at time.Time
	wrote := func(p replica.Place, t time.Time) {
		if t.After(at) {
			last, at = p, t
		}
	}
	for _, s := range r.Ends.Stopped {
		wrote(s.Place, s.Time)
	}
	for _, c := range r.Candidates() {
		if c.Emptied != nil {
			wrote(c.Place, c.Emptied.Time)
		}
	}
	if !at.IsZero() {
		return last, nil
	}
	return replica.Place{}, Refuse("--on is needed: the replica that restores the snapshot, one of %s",
		strings.Join(replica.PlaceNames(known), " or "))
}

// GiveAgain is what an order that is in force becomes where the wish says more of who is silent; found is false where
// it does not, and the order is only followed. What an order says is never changed, so a newer one takes its place.
func (r Restore) GiveAgain(o record.Order, w Wish) (c Choice, found bool, err error) {
	if flags := w.ofANewOrder(); flags != "" {
		return c, false, Refuse("%s: order %d is in force, and without --from it is only followed: say --from, too, "+
			"for a newer order, or leave it out", flags, o.Number)
	}
	more := slices.DeleteFunc(slices.Clone(w.Silent), func(id string) bool {
		return slices.Contains(o.Restore.Silent, id)
	})
	switch {
	case len(more) == 0:
		return c, false, nil
	case r.settled(o):
		return c, false, Refuse("--silent: order %d is being carried out, and waits for nobody any more: leave it out",
			o.Number)
	}
	if c.Risk, err = r.silentRisk(more, o.Restore.Replica); err != nil {
		return c, false, err
	}
	c.Order = *o.Restore
	c.Order.Silent = slices.Concat(c.Order.Silent, more)
	return c, true, nil
}

// silentRisk checks the instances of --silent against the record, and says what it means where one of them still
// runs; empty: none is named.
func (r Restore) silentRisk(ids []string, restorer replica.Place) (string, error) {
	var names []string
	for _, id := range ids {
		i, known := r.instance(id)
		switch {
		case !known:
			return "", Refuse("--silent %q: the record knows no such instance in epoch %d; not proven to have "+
				"stopped: %s", id, r.Ends.Number, cmp.Or(strings.Join(InstanceTexts(r.NotStopped(restorer)), ", "),
				"-"))
		case i.Place == restorer && r.IsNewest(i):
			return "", Refuse("--silent %s: this is the instance of %s, which restores: it says itself that it has "+
				"stopped, so leave it out", id, restorer)
		}
		names = append(names, InstanceText(i))
	}
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("These count as silent because you say so: %s. If it still runs, what it acknowledges from "+
		"now on "+
		"is lost, and its clients see two histories.", strings.Join(names, ", ")), nil
}
