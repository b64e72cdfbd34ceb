package plan

// Standing is how a manager's set compares with the one that wrote the inventory last.
type Standing string

// The standings. Only Newest and Current write.
const (
	// Newest: nothing was written by this set yet, and it comes after what was.
	Newest Standing = "newest"
	// Current: the inventory is this set's.
	Current Standing = "current"
	// Older: another replica has a newer set.
	Older Standing = "older"
	// Differs: another replica has another set of the same version, and was first.
	Differs Standing = "differs"
)

// Writes says that a manager with this standing may change the cluster.
func (s Standing) Writes() bool { return s == Newest || s == Current }

// Stand compares a set with the inventory; nil: there is none. Sets rank by their version. Of one version, a set
// without faults comes before one with faults: a replica whose disk spoils a file must not hold back the others. Two
// sets of the same rank are never told apart by their content: whoever came first stays, or they would overwrite each
// other for ever.
func Stand(inv *Inventory, s Set) Standing {
	if inv == nil || inv.Version == "" {
		return Newest
	}
	switch c := s.Version.Compare(inv.Version); {
	case c > 0:
		return Newest
	case c < 0:
		return Older
	case s.Digest == inv.Digest:
		return Current
	case s.Complete() && !inv.Complete:
		return Newest
	}
	return Differs
}
