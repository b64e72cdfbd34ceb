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
	// Unserved says that the cluster does not serve the object's kind, for UnservedFor so far. Whether the object is
	// there is not known then.
	Unserved    bool
	UnservedFor time.Duration
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
	// Refused: somebody else's object has its name, and stays.
	Refused bool
}

// Known is what the manager remembers about one object; what there is nothing of is nil.
type Known struct {
	Seen    *Seen
	Trouble *Trouble
	Contest *Contest
	// Waits is what has to be ready before the object is made; empty: nothing.
	Waits string
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
	Yield  Action = "yield"
	Wait   Action = "wait"
)

// Step is what is done about one object, and why.
type Step struct {
	Object
	Action Action
	// Origin is the mark that the object gets, with Create and Check.
	Origin string
	Reason string
}

// Decide is the step about one object.
func Decide(o Object, l Live, k Known, now time.Time) Step {
	s := Step{Object: o}
	switch {
	case k.Trouble != nil && now.Before(k.Trouble.Next):
		s.Action, s.Reason = Pause, k.Trouble.Reason
	case l.Fault != "":
		s.Action, s.Reason = Fail, l.Fault
	case !l.Exists && k.Waits != "":
		s.Action, s.Reason = Wait, "it waits for "+k.Waits
	case !l.Exists && k.Contest.Yields(now):
		s.Action, s.Reason = Yield, k.Contest.Reason()
	case !l.Exists:
		s.Action, s.Origin, s.Reason = Create, OriginMade, "it is not there"
	case o.Mode == EnsureExists:
		s.Action, s.Reason = Leave, "it exists"
	case !l.ours() && !o.TakeOver:
		s.Action, s.Reason = Refuse, fmt.Sprintf("it exists and was not made by this manager: delete it, or let its "+
			"manifest take it over with the annotation %s: \"true\"", TakeOverAnnotation)
	case l.ours() && k.Seen != nil && k.Seen.Hash == o.Hash && k.Seen.Print == l.Print:
		s.Action, s.Reason = Keep, "nothing has changed since it was found to be right"
	case k.Contest.Yields(now):
		s.Action, s.Reason = Yield, k.Contest.Reason()
	case !l.ours():
		s.Action, s.Origin, s.Reason = Check, OriginTaken, "its manifest takes it over"
	default:
		s.Action, s.Origin, s.Reason = Check, l.Origin, "it may differ from its manifest"
	}
	return s
}

// Expected are the objects that have to be in the inventory before the steps are taken.
func Expected(steps []Step) (out []ID) {
	for _, s := range steps {
		switch s.Action {
		case Create, Check, Keep, Yield:
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

// Whole is what has to be known of a set before it deletes anything.
type Whole struct {
	// Standing is how the pass began: the pass that claims the inventory never deletes.
	Standing Standing
	// Changing says that the folder has been seen to differ from the set.
	Changing bool
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
	case w.Held < w.Grace:
		return false,
			fmt.Sprintf("a set deletes nothing in its first %s: the managers of the set before may still write",
				w.Grace)
	}
	return true, ""
}

// HeldBack names the object of the set that has to be in place before a leftover goes: the new stands before the old
// goes. pending are those that are not, and may come to be. Which of them takes a leftover's place nobody can say, so
// each of the same namespace may, and each that is in none.
func HeldBack(leftover ID, pending []ID) (by ID, held bool) {
	for _, p := range pending {
		if p.Namespace == "" || leftover.Namespace == "" || p.Namespace == leftover.Namespace {
			return p, true
		}
	}
	return ID{}, false
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

// unservedPatience is how long a kind may not be served before its leftovers are given up: an extension apiserver is
// rolled, or a definition replaced, in less.
const unservedPatience = 10 * time.Minute

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
	case l.Unserved && l.UnservedFor < unservedPatience:
		return Stay, "the cluster does not serve its kind at the moment"
	case l.Unserved:
		return Release, fmt.Sprintf("the cluster has not served its kind for %s", unservedPatience)
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
