package plan

import (
	"fmt"
	"time"
)

// Live is what the cluster has under the name of an object.
type Live struct {
	Exists bool
	// Origin is OriginLabel's value; Owned says that FieldOwner has applied fields of it; Mode is ModeLabel's value.
	Origin, Mode string
	Owned        bool
	// Print is a fingerprint of all that a manifest can set; empty where nothing exists.
	Print string
	// Fault is why the object could not be observed; then nothing else here counts.
	Fault string
}

// ours says that the manager keeps the object. Both marks are needed: a person who copies a manifest out of the cluster
// copies the label with it, but not the owner of its fields.
func (l Live) ours() bool { return l.Exists && l.Owned && l.Origin != "" }

// Seen is what the manager remembers of an object that was found to be as its manifest says.
type Seen struct {
	Hash, Print string
}

// Trouble is an object that the last try failed on.
type Trouble struct {
	Reason string
	// Next is when it is tried again.
	Next time.Time
}

// Action is what is done about one object of the set.
type Action string

// The actions. Create and Check may write, the others do not.
const (
	Create Action = "create"
	Check  Action = "check"
	Keep   Action = "keep"
	Leave  Action = "leave"
	Refuse Action = "refuse"
	Pause  Action = "pause"
	Fail   Action = "fail"
)

// Step is what is done about one object, and why.
type Step struct {
	Object
	Action Action
	// Origin is the mark that the object gets, with Create and Check.
	Origin string
	Reason string
}

// Decide is the step about one object. seen and trouble are nil where there is nothing to remember.
func Decide(o Object, l Live, seen *Seen, trouble *Trouble, now time.Time) Step {
	s := Step{Object: o}
	switch {
	case trouble != nil && now.Before(trouble.Next):
		s.Action, s.Reason = Pause, trouble.Reason
	case l.Fault != "":
		s.Action, s.Reason = Fail, l.Fault
	case !l.Exists:
		s.Action, s.Origin, s.Reason = Create, OriginMade, "it is not there"
	case o.Mode == EnsureExists:
		s.Action, s.Reason = Leave, "it exists"
	case !l.ours() && !o.TakeOver:
		s.Action, s.Reason = Refuse, fmt.Sprintf("it exists and was not made by this manager: delete it, or let its "+
			"manifest take it over with the annotation %s: \"true\"", TakeOverAnnotation)
	case !l.ours():
		s.Action, s.Origin, s.Reason = Check, OriginTaken, "its manifest takes it over"
	case seen != nil && seen.Hash == o.Hash && seen.Print == l.Print:
		s.Action, s.Reason = Keep, "nothing has changed since it was found to be right"
	default:
		s.Action, s.Origin, s.Reason = Check, l.Origin, "it may differ from its manifest"
	}
	return s
}

// Expected are the objects that have to be in the inventory before the steps are taken.
func Expected(steps []Step) (out []ID) {
	for _, s := range steps {
		switch s.Action {
		case Create, Check, Keep:
			out = append(out, s.ID)
		}
	}
	return out
}

// Yielded are the objects that the inventory gives up before the steps are taken. What is left as it is does not get
// its new mode written, so the mode could not keep it from being deleted once a later set drops it.
func Yielded(steps []Step) (out []ID) {
	for _, s := range steps {
		if s.Action == Leave {
			out = append(out, s.ID)
		}
	}
	return out
}

// Whole is what is known of how far a set is in place.
type Whole struct {
	// Standing is how the pass began: the pass that claims the inventory never deletes.
	Standing Standing
	// Changing says that the folder has been seen to differ from the set.
	Changing bool
	// Pending counts the objects of the set that are not in place: the new stands before the old goes.
	Pending int
	// Held is how long the inventory has been known to be the set's. For Grace, what a manager with the set before has
	// in flight may still land.
	Held, Grace time.Duration
}

// MayPrune says whether what the set has no more may be deleted, and where not, why.
func MayPrune(s Set, w Whole) (ok bool, why string) {
	switch {
	case len(s.Objects) == 0:
		return false, "the folder holds no object"
	case len(s.Faults) > 0:
		return false, "the folder has faults, so it is not known what it holds"
	case w.Changing:
		return false, "the folder is being changed"
	case w.Standing == Newest:
		return false, "the set was applied for the first time only now"
	case w.Standing != Current:
		return false, "the inventory is of another set"
	case w.Pending > 0:
		return false, fmt.Sprintf("of the set are not in place: %d", w.Pending)
	case w.Held < w.Grace:
		return false,
			fmt.Sprintf("a set deletes nothing in its first %s: the managers of the set before may still write",
				w.Grace)
	}
	return true, ""
}

// Leftovers are the objects of the inventory that the set does not have, in the order in which they are deleted: the
// last stage first.
func Leftovers(inv Inventory, s Set) (out []ID) {
	wanted := make(map[Key]bool, len(s.Objects))
	for _, o := range s.Objects {
		wanted[o.Key()] = true
	}
	for stage := Stages - 1; stage >= 0; stage-- {
		for _, id := range inv.Objects {
			if id.Stage() == stage && !wanted[id.Key()] {
				out = append(out, id)
			}
		}
	}
	return out
}

// Fate is what becomes of a leftover.
type Fate string

// The fates. Delete deletes the object; Release leaves it to whoever owns it now; Forget: it is gone already; Stay:
// nothing is known, and it stays in the inventory.
const (
	Delete  Fate = "delete"
	Release Fate = "release"
	Forget  Fate = "forget"
	Stay    Fate = "stay"
)

// Judge says what becomes of a leftover, and why.
func Judge(id ID, l Live) (Fate, string) {
	switch {
	case l.Fault != "":
		return Stay, l.Fault
	case !l.Exists:
		return Forget, "it is gone"
	case !l.ours():
		return Release, "it is not this manager's any more"
	case l.Origin != OriginMade:
		return Release, "it was there before the manager took it over"
	case Mode(l.Mode) == EnsureExists:
		return Release, "its mode is " + string(EnsureExists)
	case id.holdsOthers():
		return Release, "deleting it would delete what others have made in it"
	}
	return Delete, "the set does not have it any more"
}
