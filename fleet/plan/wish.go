package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// Kind is what an operator wants.
type Kind string

// The kinds of wishes.
const (
	Add     Kind = "add"
	Remove  Kind = "remove"
	Replace Kind = "replace"
	Roll    Kind = "roll"
	Create  Kind = "create"
	Delete  Kind = "delete"
)

// Wish is what an operator wants. Resolve completes it, once; Make works on what Resolve returned.
type Wish struct {
	Kind Kind
	// Name and Zone say which replica: its name, or ZONE.NAME, or any of a zone.
	Name, Zone string
	// Zones are where replicas are made if no zone is named. Prefix begins the names of new VMs, and Suffixes are
	// drawn ends of them, some for each replica that may be made.
	Zones    []string
	Prefix   string
	Suffixes []string
	// Count is how many replicas Create makes.
	Count int
	// Image is what VMs are made of, as VM.Image shows it. Roll wants that of all, and all to be as the document says.
	Image string
	// InPlace replaces a VM under its own name. With NewDisk it gets an empty data disk.
	InPlace, NewDisk bool
	// DropDisk deletes the data disk of who is taken out; without it the disk is kept. One that is replaced in its
	// place keeps it in any case.
	DropDisk bool
	// Interrupt accepts that nobody is served while the only replica is replaced in its place.
	Interrupt bool
	// Again begins a replacement in its place anew, although one was begun within the last hour, or one that has not
	// come to its end.
	Again bool

	// What follows is Resolve's.

	// Place is who is removed or replaced; New is who is added; Places are all that Create makes, or finds.
	Place, New replica.Place
	Places     []replica.Place
	// InstanceID and DiskID are the VM and the data disk that Place has, or had last, as the wish is resolved; empty:
	// none. One that was begun and has a disk alone has no InstanceID.
	InstanceID, DiskID string
	// Old are the numeric ids of the VMs that Roll makes anew.
	Old []string
	// Wanted is the number of replicas that is ordered once a removal is done; 0: nothing is ordered.
	Wanted int
}

// Resolve says who is meant: names become places, VMs and disks, and new replicas get their names. It is asked once; a
// wish that was begun before a crash is found again by what it left.
func Resolve(w Wish, i Inventory) (Wish, error) {
	if err := w.isNotDeleted(i); err != nil {
		return w, err
	}
	if err := i.trust(w); err != nil {
		return w, err
	}
	switch w.Kind {
	case Add:
		return w.resolveNew(i)
	case Remove:
		return w.resolveOld(i)
	case Replace:
		w, err := w.resolveOld(i)
		if err != nil || w.InPlace {
			return w, err
		}
		w.Zone, w.Name, w.Wanted = w.Place.Zone, "", 0
		return w.resolveNew(i)
	case Roll:
		return w.resolveRoll(i), nil
	case Create:
		return w.resolveAll(i)
	}
	return w, nil
}

// isNotDeleted refuses to create a cluster whose VMs were all deleted: nobody is left whom a new master could join, and
// the record does not let it form the cluster again. That is so whatever was reported of before, so it is said at once.
func (w Wish) isNotDeleted(i Inventory) error {
	if w.Kind != Create || !i.Record.Formed || len(i.VMs) > 0 || i.Incomplete != "" {
		return nil
	}
	return refuse(WasDeleted, "A new cluster needs another name. If the disks are left, make VMs of the same names "+
		"with them: they go on by themselves.",
		"The record says that cluster %s was formed, and the Compute API lists no VM of it.", i.Cluster)
}

// resolveAll finds the places of all replicas that are to be: those that are there, then those that were begun in the
// wish's zones, and new ones. A zone that makes no VM can so be left out when the command is run again.
func (w Wish) resolveAll(i Inventory) (Wish, error) {
	w.Places = i.Known()
	for _, d := range i.disksAlone() {
		if len(w.Places) < w.Count && d.Replaces == "" && d.User == "" && slices.Contains(w.Zones, d.Zone) {
			w.Places = append(w.Places, d.place())
		}
	}
	slices.SortFunc(w.Places, replica.ComparePlaces)
	w.Places = slices.Compact(w.Places)
	for len(w.Places) < w.Count {
		for _, p := range w.Places { // with those that are drawn so far
			if _, there := i.vm(p); !there {
				i.VMs = append(i.VMs[:len(i.VMs):len(i.VMs)], VM{Place: p})
			}
		}
		name, err := w.freshName(i)
		if err != nil {
			return w, err
		}
		w.Places = append(w.Places, replica.Place{Zone: i.emptiest(w.Zones), Name: name})
	}
	return w, nil
}

// resolveNew finds the place of a new replica: that of one which was begun and has not come to its end, or a new one.
func (w Wish) resolveNew(i Inventory) (Wish, error) {
	if w.Zone != "" && replica.RegionOf(w.Zone) != i.Record.Region {
		return w, refuse(WrongZone, "Name a zone of that region.",
			"Zone %s is not in %s, where the cluster is.", w.Zone, i.Record.Region)
	}
	if w.Name != "" && w.Kind == Add {
		return w.resolveNamed(i)
	}
	begun := i.begun(w.InstanceID)
	if w.Kind == Add {
		begun = append(begun, i.unserved()...)
	}
	for _, p := range begun {
		if (w.Zone == "" || p.Zone == w.Zone) && p != w.Place {
			w.New = p
			return w, nil
		}
	}
	if n := len(i.Known()); n >= replica.MostReplicas && w.Kind == Add {
		return w, refuse(TooManyReplicas, "Remove one first.",
			"There are %d replicas already, and no more than %d make sense.", n, replica.MostReplicas)
	}
	if w.Zone == "" {
		w.Zone = i.emptiest(w.Zones)
	}
	name, err := w.freshName(i)
	w.New = replica.Place{Zone: w.Zone, Name: name}
	return w, err
}

// resolveNamed is a new replica whose name the operator chose.
func (w Wish) resolveNamed(i Inventory) (Wish, error) {
	zone := w.Zone
	if zone == "" {
		zone = i.emptiest(w.Zones)
	}
	for _, v := range i.VMs { // begun before, wherever
		if v.Name == w.Name && w.Zone == "" {
			zone = v.Zone
		}
	}
	w.New = replica.Place{Zone: zone, Name: w.Name}
	if !w.New.Valid() {
		return w, refuse(NameTaken, "Name it with a-z, 0-9 and -.", "%q is no name for a VM.", w.Name)
	}
	if l, left := i.Record.leave(w.New); left {
		return w, refuse(NameTaken, fmt.Sprintf("Choose another name, or take the order back: 'quorate orders withdraw %d'.",
			l.Number),
			"Replica %s was ordered to leave by order %d, and would stay out.", w.New, l.Number)
	}
	return w, nil
}

// emptiest is the zone with the fewest replicas, the first of several.
func (i Inventory) emptiest(zones []string) string {
	best, least := "", 0
	for _, z := range zones {
		n := 0
		for _, p := range i.Known() {
			if p.Zone == z {
				n++
			}
		}
		if best == "" || n < least {
			best, least = z, n
		}
	}
	return best
}

// freshName is a name that nobody has or ever had: a place that has left stays out, whoever is made there.
func (w Wish) freshName(i Inventory) (string, error) {
	for _, suffix := range w.Suffixes {
		name := w.Prefix + "-" + suffix
		taken := slices.ContainsFunc(i.VMs, func(v VM) bool { return v.Name == name }) ||
			slices.ContainsFunc(i.Disks, func(d Disk) bool {
				return d.Replica == name || strings.HasPrefix(d.Name, name)
			}) ||
			slices.ContainsFunc(i.Record.Replicas, func(k Incarnation) bool { return k.Name == name }) ||
			slices.ContainsFunc(i.Record.Leaves, func(l Leave) bool { return l.Name == name })
		if !taken {
			return name, nil
		}
	}
	return "", refuse(NameTaken, "Run the command again, or name it.", "No name that begins with %s is free.",
		w.Prefix)
}

// resolveOld finds who is removed or replaced, and which VM and disk that is.
func (w Wish) resolveOld(i Inventory) (Wish, error) {
	if w.Kind == Replace && w.Name == "" { // of a zone: the one that has come to replace the other would be meant next
		return w, refuse(NoSuchReplica, "Name it.", "It is not said which replica is replaced.")
	}
	var fits []replica.Place
	for _, p := range i.candidates(w) {
		named := w.Name == "" || w.Name == p.Name || w.Name == p.String()
		if named && (w.Zone == "" || w.Zone == p.Zone) {
			fits = append(fits, p)
		}
	}
	switch {
	case len(fits) == 0:
		return w, refuse(NoSuchReplica, "There are: "+strings.Join(replica.PlaceNames(i.Known()), ", ")+".",
			"No replica is %s.", w.which())
	case len(fits) > 1 && w.Name != "":
		return w, refuse(NoSuchReplica, "Name it as ZONE.NAME.", "Several replicas are %s: %s.", w.which(),
			strings.Join(replica.PlaceNames(fits), ", "))
	case w.Name == "" && w.Zone == "":
		return w, refuse(NoSuchReplica, "Name a replica, or a zone with --zone.", "It is not said who is meant.")
	}
	w.Place = slices.MinFunc(fits, i.rather)
	if known, ok := i.Record.incarnation(w.Place); ok {
		w.InstanceID, w.DiskID = known.InstanceID, known.DiskID
	}
	if v, ok := i.vm(w.Place); ok {
		w.InstanceID = v.InstanceID
		if w.wasBegun(v, i) {
			w.InstanceID = v.Replaces
		}
		if d, ok := i.disk(v.Zone, v.DataDisk); ok && w.DiskID == "" {
			w.DiskID = d.ID
		}
	}
	if d, ok := i.diskAlone(w.Place); ok {
		w.DiskID = d.ID
	}
	w.Wanted = max(1, min(i.Record.Wanted, len(i.staying(w.Place))))
	return w, nil
}

// wasBegun: a VM was made by a replacement in its place such as is wished for, which goes on: it has not come to its
// end, or it has since the command ended with an error.
func (w Wish) wasBegun(v VM, i Inventory) bool {
	if w.Kind != Replace || !w.InPlace || w.Again || v.Replaces == "" {
		return false
	}
	d, _ := i.disk(v.Zone, v.DataDisk)
	return (v.Young || !i.joined(v.Place)) && (!w.NewDisk || d.Replaces == v.Replaces)
}

// which is who was asked for, for a sentence.
func (w Wish) which() string {
	switch {
	case w.Name == "":
		return "in zone " + w.Zone
	case w.Zone == "":
		return fmt.Sprintf("called %q", w.Name)
	}
	return fmt.Sprintf("called %q in zone %s", w.Name, w.Zone)
}

// candidates are all who can be removed: also one that has left and still has a VM, or a disk that is to be deleted,
// and one that was begun and has a disk alone. Who is named may have nothing left.
func (i Inventory) candidates(w Wish) []replica.Place {
	out := i.Known()
	for _, l := range i.Record.Leaves {
		k, ok := i.Record.incarnation(l.Place)
		_, has := i.diskByID(k.DiskID)
		if ok && (w.Name != "" || has && w.DropDisk) {
			out = append(out, l.Place)
		}
	}
	if w.Kind == Remove && (w.Name != "" || w.DropDisk) {
		for _, d := range i.disksAlone() {
			out = append(out, d.place())
		}
	}
	slices.SortFunc(out, replica.ComparePlaces)
	return slices.Compact(out)
}

// staying are the places that neither have left nor leave, without one.
func (i Inventory) staying(but replica.Place) []replica.Place {
	return slices.DeleteFunc(i.Known(), func(p replica.Place) bool {
		_, left := i.Record.leave(p)
		return left || p == but
	})
}

// rather orders candidates of one zone: one whose removal was begun, one that is not in touch, a learner, one that does
// not lead, by name.
func (i Inventory) rather(a, b replica.Place) int {
	if d := i.worth(a) - i.worth(b); d != 0 {
		return d
	}
	return replica.ComparePlaces(a, b)
}

func (i Inventory) worth(p replica.Place) int {
	m, member := i.Members.member(p)
	_, leaves := i.Record.leave(p)
	switch {
	case leaves:
		return 0
	case !member || !m.Heard:
		return 1
	case !m.Ready:
		return 2
	case !m.Voter:
		return 3
	case !m.Leads:
		return 4
	}
	return 5
}
