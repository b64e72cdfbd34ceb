package plan

import "slices"

// trust refuses to plan by what may be wrong: a list that is not whole, or that says something else than the record and
// the leader. An API that answers "there is nothing" is not believed against a member that is heard of.
func (i Inventory) trust(w Wish) error {
	r := i.Record
	switch {
	case i.Incomplete != "":
		return refuse(ListIncomplete, "Nothing is done by a list that may lack something: try again.",
			"The Compute API's list is not whole: %s.", i.Incomplete)
	case r.Unread != "":
		return refuse(RecordUnread, "Nothing was changed: check the record with 'quorate record check'.",
			"The record cannot be gone by: %s.", r.Unread)
	case !r.Begun && w.Kind != Create && !(w.Kind == Delete && len(i.Surroundings.There) > 0):
		return refuse(RecordNotBegun, "'quorate create' begins it.",
			"The record has not begun, so there is no cluster yet.")
	case !r.Begun && len(i.VMs)+len(i.Disks) > 0: // as they are where the document names another bucket
		return refuse(RecordNotBegun, "Check record.url of the document; "+
			"'quorate record init' begins the record for the VMs that are there.",
			"The record has not begun, though VMs or data disks of cluster %s are there.", i.Cluster)
	}
	if w.Kind == Delete { // all of it goes, whatever state it is in
		if i.Members.Unknown == "" {
			return i.agrees()
		}
		return nil
	}
	if r.Busy != "" {
		return refuse(MembershipBusy, "Try again when that is over.", "The membership is to be left alone: %s.", r.Busy)
	}
	if !r.Formed && w.Kind == Create {
		return nil // there is nobody yet
	}
	if i.Members.Unknown != "" && !w.staysMember() {
		return i.nobodyLeads()
	}
	return i.agrees()
}

func (i Inventory) nobodyLeads() error {
	return refuse(MembersUnknown, "'quorate health' says what is wrong.",
		"Who the members are is not known: %s.", i.Members.Unknown)
}

// staysMember: the wish makes VMs anew whose members stay. While the only replica is away for it nobody leads, and what
// ends that is its own VM.
func (w Wish) staysMember() bool { return w.Kind == Roll || w.Kind == Replace && w.InPlace }

// mayBegin refuses a plan that does not begin by bringing somebody back, while nobody says who the members are: then
// nobody is taken away, and nothing counts as done.
func (b *builder) mayBegin() error {
	if b.whoLeads.Unknown == "" || !b.staysMember() {
		return nil
	}
	if len(b.plan.Steps) > 0 && slices.Contains([]Act{CreateDisk, CreateVM, AwaitJoined}, b.plan.Steps[0].Act) {
		return nil
	}
	return Inventory{Members: b.whoLeads}.nobodyLeads()
}

// agrees holds the list of VMs against what the leader and the list of disks say. Who has not joined yet is known by
// its disk alone. A disk that somebody attached to another VM than it was made for says nothing.
func (i Inventory) agrees() error {
	const again = "The list is stale, or not whole: try again in a minute."
	for n, v := range i.VMs {
		if slices.ContainsFunc(i.VMs[:n], func(o VM) bool { return o.Place == v.Place }) {
			return refuse(ListContradicts, again, "The Compute API lists %s twice.", v.Place)
		}
	}
	for _, d := range i.Disks {
		if _, listed := i.vm(d.place()); !listed && d.User != "" && d.User == d.Replica {
			return refuse(ListContradicts, again, "Data disk %s is attached to %s, and the Compute API lists no such VM.",
				d.Name, d.place())
		}
	}
	for _, m := range i.Members.List {
		_, listed := i.vm(m.Place)
		switch {
		case m.Heard && m.nameless():
			return refuse(MembersUnknown, "It is one that joins: try again in a minute.",
				"etcd's %s has not said yet whose it is.", m.Name)
		case m.Heard && !listed:
			return refuse(ListContradicts, again, "etcd's leader hears of %s, and the Compute API lists no such VM.",
				m.Place)
		}
	}
	return nil
}
