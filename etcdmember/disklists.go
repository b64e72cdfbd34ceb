package etcdmember

import (
	"context"
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// listDisks lists the data disks and what each is attached to: first those with the cluster's label, then those that
// the record names in addition.
func (c *computeLists) listDisks(ctx context.Context, v record.View, l *table.Listing) {
	disks, err := c.api.Disks(ctx)
	if l.DisksErr = err; err != nil {
		return
	}
	l.Users = map[string][]replica.Place{}
	for _, d := range disks {
		l.AddDisk(d)
	}
	for _, d := range c.disksNotListed(ctx, v, *l) {
		l.AddDisk(d)
	}
}

// disksNotListed is notListed for the data disks of the record: one that lost its label would count as deleted, and
// with it the last copy of what only its member acknowledged, or the last hold of a VM that still runs. A disk counts
// as listed, and as attached to the VM that had it, unless the API says otherwise of this very id. Whoever does not
// find this VM's own disk by its id, or, where that is not known, the first that was just listed, knows nothing.
func (c *computeLists) disksNotListed(ctx context.Context, v record.View, l table.Listing) []replica.Disk {
	out := slices.DeleteFunc(recordedDisks(v), func(want replica.Disk) bool {
		return slices.Contains(l.Disks, want.ID)
	})
	return askForEach(out, func() bool { return c.findsByID(ctx, l) }, func(d *replica.Disk) (gone bool) {
		answer, found, err := c.api.Disk(ctx, d.ID)
		if err == nil {
			*d = answer
		}
		return err == nil && !found
	})
}

// findsByID reports whether the API finds a disk by its id that is known to exist.
func (c *computeLists) findsByID(ctx context.Context, l table.Listing) bool {
	exists := c.ownDisk()
	if exists == "" && len(l.Disks) > 0 {
		exists = l.Disks[0]
	}
	if exists == "" {
		return false
	}
	_, found, err := c.api.Disk(ctx, exists)
	return err == nil && found
}

// recordedDisks are the disks that a decision may ask about: those of the places' newest incarnations, and then those
// of all incarnations of the newest epoch that was formed, whose VMs have to be silent before a restore. Their users
// are the VMs that had them by the record.
func recordedDisks(v record.View) []replica.Disk {
	var newest, older []replica.Disk
	formed := record.NumberOf(v.NewestFormed())
	for p, incarnations := range v.Replicas {
		for n, i := range incarnations {
			switch d := (replica.Disk{ID: i.DiskID, Users: []replica.Place{p}}); {
			case i.DiskID == "":
			case n == len(incarnations)-1:
				newest = append(newest, d)
			case i.Epoch == formed:
				older = append(older, d)
			}
		}
	}
	var out []replica.Disk
	for _, d := range append(newest, older...) {
		n := slices.IndexFunc(out, func(have replica.Disk) bool { return have.ID == d.ID })
		if n < 0 {
			out = append(out, d)
		} else if !slices.Contains(out[n].Users, d.Users[0]) {
			out[n].Users = append(out[n].Users, d.Users[0])
		}
	}
	return out
}
