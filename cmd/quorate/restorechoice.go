package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// choice is what a restore will be made of.
type choice struct {
	order record.RestoreOrder
	// what names the source, loses says what will be lost, as sentences.
	what  string
	loses string
}

// remains is what the record knows of one replica's directory of the epoch.
type remains struct {
	place       replica.Place
	incarnation record.Incarnation
	// stopped is its own word that it has ended, with the end of its log where that was known; nil: it has not said so.
	stopped *record.Stopped
	mark    *record.Mark
	// emptied is the pending incarnation that stands on another, empty disk now; nil: none does. The former disk may
	// come back.
	emptied *record.Incarnation
}

// holds: its disk is whole by its own word.
func (r remains) holds() bool { return r.stopped != nil && r.stopped.LastIndex > 0 }

// state says how it stands, for a table.
func (r remains) state() string {
	switch {
	case r.emptied != nil:
		return "its disk is empty now"
	case r.holds():
		return "stopped, whole"
	case r.stopped != nil:
		return "stopped, log not known"
	}
	return "has not stopped"
}

// rank orders remains by what is known of them.
func (r remains) rank() int {
	return slices.Index([]string{"stopped, whole", "has not stopped", "stopped, log not known",
		"its disk is empty now"}, r.state())
}

// reaches is how far its log reaches, at the least.
func (r remains) reaches() (term, index uint64) {
	switch {
	case r.holds():
		return r.stopped.Term, r.stopped.LastIndex
	case r.mark != nil:
		return r.mark.Term, r.mark.Applied
	}
	return 0, 0
}

// remains lists each place that had a member in the epoch, those that stopped with the longest log first, then those
// that have not stopped, and last those whose disk is another one now.
func (w wreck) remains() (out []remains) {
	for _, p := range w.Places() {
		all := w.Replicas[p]
		for n, i := range slices.Backward(all) {
			if i.Epoch != w.epoch.Number || i.Started == nil || i.Started.MemberID == 0 {
				continue
			}
			r := remains{place: p, incarnation: i, stopped: w.lastWord(all[n:]), emptied: emptied(all[n:])}
			if m, ok := w.Marks[i.Started.MemberID]; ok && m.Epoch == w.epoch.Number {
				r.mark = &m
			}
			out = append(out, r)
			break
		}
	}
	slices.SortStableFunc(out, func(a, b remains) int {
		at, ai := a.reaches()
		bt, bi := b.reaches()
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(bt, at), cmp.Compare(bi, ai))
	})
	return out
}

// lastWord is what the first of the incarnations, or one that followed it with the same member, has said of its end;
// nil: nothing. What was said under an earlier incarnation is no longer true of a member that went on.
func (w wreck) lastWord(incarnations []record.Incarnation) (word *record.Stopped) {
	first := incarnations[0]
	for _, i := range incarnations {
		s := w.epoch.StoppedBy(i)
		if s == nil || i.Epoch != first.Epoch {
			continue
		}
		same := s.MemberID == first.Started.MemberID
		own := i.InstanceID == first.InstanceID && s.MemberID == 0 // where the log ends was not known
		if word == nil && own || same && (word == nil || s.LastIndex >= word.LastIndex) {
			word = s
		}
	}
	return word
}

// emptied is the newest of the incarnations of an epoch where it is pending, and on an empty disk that is not the
// first one's.
func emptied(incarnations []record.Incarnation) *record.Incarnation {
	first := incarnations[0]
	for _, i := range slices.Backward(incarnations[1:]) {
		if i.Epoch != first.Epoch {
			continue
		}
		disk := first.Disk()
		other := i.InstanceID != first.InstanceID || i.DiskID != "" && disk != "" && i.DiskID != disk
		if i.Started == nil && i.EmptyDisk && other {
			return &i
		}
		return nil
	}
	return nil
}

// choose finds the source that the flags name, or the best that the record knows of.
func (w wreck) choose(f *restoreFlags) (choice, error) {
	kind, name, _ := strings.Cut(f.from, "=")
	switch kind {
	case "":
		return w.best(f)
	case "snapshot":
		return w.fromSnapshot(name, f.on)
	default: // directory, learner
		p, err := findPlace(w.View, name)
		if err != nil {
			return choice{}, err
		}
		for _, r := range w.remains() {
			if r.place == p {
				return w.fromDirectory(r, f.exact)
			}
		}
		return choice{}, refused("replica %s never had a member in epoch %d", p, w.epoch.Number)
	}
}

// best is a disk that is whole by its replica's own word; or the only one of which nothing bad is known; or, where
// every place stands on another, empty disk, the newest snapshot.
func (w wreck) best(f *restoreFlags) (choice, error) {
	left := w.notLost()
	switch {
	case len(left) == 0 && f.exact:
		return choice{}, refused("--exact: no disk of epoch %d is known to survive, and a snapshot is used as it is: "+
			"leave it out", w.epoch.Number)
	case len(left) == 0:
		return w.fromSnapshot("", f.on)
	case !left[0].holds() && len(left) > 1:
		return choice{}, refused("the record does not say whose disks survive: name one that does (%s), or --from "+
			"snapshot", directories(left))
	case f.on != "":
		return choice{}, refused("--on %s: the best there is to restore from is the directory of %s, and a directory "+
			"is restored by the replica whose it is: "+
			"for that leave --on out or say %s; for a snapshot say --from snapshot, too", f.on, left[0].place,
			directories(left[:1]))
	}
	return w.fromDirectory(left[0], f.exact)
}

// notLost are the remains of which nothing bad is known.
func (w wreck) notLost() []remains {
	return slices.DeleteFunc(w.remains(), func(r remains) bool { return r.emptied != nil })
}

// directories says how remains are named on the command line.
func directories(list []remains) string {
	var names []string
	for _, r := range list {
		names = append(names, "--from directory="+r.place.String())
	}
	return strings.Join(names, ", ")
}

func (w wreck) fromDirectory(r remains, exact bool) (choice, error) {
	c := choice{what: fmt.Sprintf("the directory of %s (member %s)", r.place, r.incarnation.Started.MemberID)}
	c.order = record.RestoreOrder{Ends: w.epoch.Number, Replica: r.place, Newest: !exact,
		From: record.Source{Kind: record.SourceDirectory, MemberID: r.incarnation.Started.MemberID,
			DiskID: r.incarnation.Disk()}}
	c.order.Term, c.order.Commit = r.reaches()
	c.loses = w.directoryLoses(r)
	return c, nil
}

// directoryLoses compares how far a log reaches with how far the cluster was known to be.
func (w wreck) directoryLoses(r remains) string {
	term, index := r.reaches()
	reach := fmt.Sprintf("Its log ends at term %d, index %d.", term, index)
	switch {
	case index == 0:
		return "How far its log reaches is not known before it has stopped: it left no mark."
	case !r.holds():
		reach = fmt.Sprintf("It has not stopped yet; its log ends at or beyond term %d, index %d, its own last mark.",
			term, index)
	}
	last, ok := w.furthestMark()
	switch {
	case !ok:
		return reach + " No mark says how far the others were."
	case last.Applied <= index:
		return fmt.Sprintf("%s That is not behind the cluster's last mark (%s, index %d). Lost is at most what the "+
			"other replicas alone acknowledged after it.", reach, when(last.Time), last.Applied)
	case !r.holds():
		return fmt.Sprintf("%s The cluster's last mark is %d entries beyond that (%s): so much may be lost, or "+
			"nothing.", reach, last.Applied-index, when(last.Time))
	}
	return fmt.Sprintf("%s The cluster's last mark is %d entries beyond that (%s): at least these are LOST.", reach,
		last.Applied-index, when(last.Time))
}

func (w wreck) fromSnapshot(name, on string) (choice, error) {
	var s *record.Snapshot
	for i := range w.snapshots {
		// The newest by its revision, which is the history's own: its time is by the clock of the VM that saved it.
		if x := &w.snapshots[i]; name == x.Name || name == "" && x.Epoch == w.epoch.Number &&
			(s == nil || x.Revision >= s.Revision) {
			s = x
		}
	}
	switch {
	case s == nil && name != "":
		return choice{}, refused("there is no snapshot %s; 'quorate snapshot list' names those that there are", name)
	case s == nil:
		return choice{}, w.noSnapshot()
	}
	p, err := w.restorer(on)
	if err != nil {
		return choice{}, err
	}
	return choice{what: fmt.Sprintf("snapshot %s, on %s", s.Name, p), loses: w.snapshotLoses(*s),
		order: record.RestoreOrder{Ends: w.epoch.Number, Replica: p, From: record.Source{Kind: record.SourceSnapshot,
			Snapshot: s.Name}}}, nil
}

// noSnapshot says what else there is where the epoch has no snapshot: disks that may be whole, or an older epoch's
// snapshot.
func (w wreck) noSnapshot() error {
	if left := w.notLost(); len(left) > 0 {
		return refused("there is no snapshot of epoch %d, but disks that are not known to be lost: name one that "+
			"survives (%s)", w.epoch.Number, directories(left))
	}
	if len(w.snapshots) > 0 {
		older := slices.MaxFunc(w.snapshots, func(a, b record.Snapshot) int {
			return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Revision, b.Revision))
		})
		return refused("there is no snapshot of epoch %d, and no disk of it is known to be whole. The newest "+
			"snapshot of an older epoch is --from snapshot=%s: all of epoch %d is lost with it",
			w.epoch.Number, older.Name, w.epoch.Number)
	}
	return recordError("there is no snapshot, and no disk of epoch %d is known to be whole: there is nothing to "+
		"restore from; nothing was written", w.epoch.Number)
}

// restorer is the replica that restores a snapshot: the named one, the only one, or the one that wrote last that it
// stopped, or that it is empty.
func (w wreck) restorer(on string) (replica.Place, error) {
	if on != "" {
		return findPlace(w.View, on)
	}
	known := w.Places()
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
	for _, s := range w.epoch.Stopped {
		wrote(s.Place, s.Time)
	}
	for _, r := range w.remains() {
		if r.emptied != nil {
			wrote(r.place, r.emptied.Time)
		}
	}
	if !at.IsZero() {
		return last, nil
	}
	return replica.Place{}, refused("--on is needed: the replica that restores the snapshot, one of %s",
		strings.Join(replica.PlaceNames(known), " or "))
}

func (w wreck) snapshotLoses(s record.Snapshot) string {
	text := fmt.Sprintf("Everything after %s, revision %d, is LOST.", when(s.Time), s.Revision)
	if m, ok := w.furthestMark(); ok && m.Time.After(s.Time) {
		text += fmt.Sprintf(" The cluster's last mark is of %s, %s later", when(m.Time), age(m.Time, s.Time))
		if s.Epoch == w.epoch.Number && m.Applied > s.Index {
			text += fmt.Sprintf(" and some %d entries further", m.Applied-s.Index)
		}
		text += "."
	}
	if s.Epoch != w.epoch.Number {
		text += fmt.Sprintf(" It is of epoch %d: all of epoch %d is lost too.", s.Epoch, w.epoch.Number)
	}
	return text
}

// notStopped are those of which neither they nor a person have said that they stopped. The agents also ask witnesses,
// which the record does not hold.
func (w wreck) notStopped(restorer replica.Place) []record.Incarnation {
	var its string
	if i := w.Last(restorer); i != nil {
		its = i.InstanceID
	}
	return table.NotStopped(w.View, &w.epoch, w.saidSilent(), its)
}

// saidSilent are the instances of which a person has said that they run nothing any more, in the order that is in
// force: the agents do not hear what an earlier order says.
func (w wreck) saidSilent() []string {
	if o, ok := w.orderInForce(); ok {
		return o.Restore.Silent
	}
	return nil
}

// isNewest: no other instance has followed at its place.
func (w wreck) isNewest(i record.Incarnation) bool {
	all := w.Replicas[i.Place]
	return i.InstanceID == all[len(all)-1].InstanceID
}

// notStoppedNames tells of those that have not stopped. Of the instances that a place has had, the newest is named and
// the earlier ones, most of which were deleted long ago, are counted.
func (w wreck) notStoppedNames(restorer replica.Place) (out []string) {
	earlier := 0
	for _, i := range w.notStopped(restorer) {
		if w.isNewest(i) {
			out = append(out, instanceText(i))
		} else {
			earlier++
		}
	}
	switch {
	case earlier == 1:
		out = append(out, "1 earlier VM of these places")
	case earlier > 1:
		out = append(out, fmt.Sprintf("%d earlier VMs of these places", earlier))
	}
	return out
}

func instanceText(i record.Incarnation) string {
	return fmt.Sprintf("%s (instance %s)", i.Place, i.InstanceID)
}

// show says what there is, what was chosen, and what it costs; stops: that VMs will be stopped for it.
func (w wreck) show(out io.Writer, c choice, stops bool) {
	var rows []row
	var former []string
	for _, r := range w.remains() {
		reach := "unknown"
		if _, index := r.reaches(); index > 0 {
			reach = fmt.Sprintf("index %d", index)
			if !r.holds() {
				reach += " or more"
			}
		}
		rows = append(rows, row{cells: []string{"directory=" + r.place.String(), r.state(), reach,
			when(r.incarnation.Time)}})
		if r.emptied != nil {
			former = append(former, r.place.String())
		}
	}
	for _, s := range w.snapshots[max(0, len(w.snapshots)-3):] {
		rows = append(rows, row{cells: []string{"snapshot=" + s.Name, "verified when saved",
			fmt.Sprintf("index %d", s.Index), when(s.Time)}})
	}
	printTable(out, []string{"SOURCE", "STATE", "REACHES", "SINCE"}, rows)
	if len(former) > 0 {
		printText(out, "", fmt.Sprintf("The former disks of these may come back, and hold more than any snapshot: %s.",
			strings.Join(former, ", ")))
	}
	printText(out, "", fmt.Sprintf("Epoch %d ends, and the next begins from %s. %s", w.epoch.Number, c.what, c.loses))
	if names := w.notStoppedNames(c.order.Replica); len(names) > 0 {
		printText(out, "", fmt.Sprintf("These have not said that they have stopped: %s. The agents wait until each "+
			"has, or is proven silent: its VM is gone or stopped, and it has written no heartbeat for two minutes.",
			strings.Join(names, ", ")))
		if stops {
			printText(out, "", fmt.Sprintf("Those of them that have not said so %s after %s has accepted the order "+
				"are stopped through the Compute API.", stopAfter, c.order.Replica))
		} else {
			printText(out, "", "To have those that cannot be reached stopped through the Compute API add --stop-vms; "+
				"or stop them by hand: gcloud compute instances stop NAME --zone ZONE.")
		}
	}
}
