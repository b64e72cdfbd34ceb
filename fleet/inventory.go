package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// The labels by which what a command has made is known again, in addition to gce.ClusterLabel.
const (
	// ReplicaLabel is on a data disk: the name of the VM that it was made for.
	ReplicaLabel = "quorate-replica"
	// ReplacesLabel is on a VM and on a data disk: the numeric id of the VM in whose place they were made.
	ReplacesLabel = "quorate-replaces"
)

// Seen are the times at which the store got each replica's report.
type Seen map[replica.Place]time.Time

// before reports whether the store got a report after these were listed.
func (s Seen) before(r report.Sighting) bool {
	at, listed := s[r.Place]
	return !listed || r.Written.After(at)
}

// Reading is everything that was read at one time.
type Reading struct {
	plan.Inventory
	// Fresh: Members is what the leader wrote after the reports were listed with which this reading was asked for.
	Fresh bool
	// VMs and Reports are what the inventory was made of.
	VMs     []gce.FleetVM
	Reports []report.Sighting
	Seen    Seen
	// fault is why something could not be read; nil: everything was.
	fault error
}

// Read reads everything: the record, then the lists, then the reports, so that these are the youngest. What cannot be
// read is said in the inventory, and is the error too.
func (f *Fleet) Read(ctx context.Context) (Reading, error) { return f.read(ctx, nil, nil) }

// read is Read, with what decides whether it is fresh, and with the ids of VMs that have been deleted meanwhile.
func (f *Fleet) read(ctx context.Context, after Seen, gone map[string]bool) (Reading, error) {
	r := Reading{Inventory: plan.Inventory{Cluster: f.Document.Name}}
	v, err := f.Cluster.View(ctx)
	if err == nil {
		err = f.fits(v)
	}
	if err != nil {
		r.Record.Unread, r.Members.Unknown, r.fault = err.Error(), "the record was not read", err
		return r, err
	}
	r.Record = recordOf(v, f.Document, time.Now())
	if err := f.readLists(ctx, &r); err != nil {
		r.Incomplete, r.Members.Unknown, r.fault = err.Error(), "the VMs were not listed", err
		return r, err
	}
	if r.Reports, err = f.Cluster.All(ctx); err != nil {
		r.Members.Unknown, r.fault = fmt.Sprintf("the reports could not be read: %s", err), err
		return r, err
	}
	r.Seen = Seen{}
	for _, s := range r.Reports {
		r.Seen[s.Place] = s.Written
	}
	r.Members, r.Fresh = witnesses{r.Reports, v.NewestFormed(), r.VMs, gone}.members(after)
	return r, nil
}

// fits refuses a record that is another cluster's, or that has lost what decides.
func (f *Fleet) fits(v record.View) error {
	if v.Inception == nil && !v.LostInception() {
		return nil
	}
	for _, d := range v.Damages() {
		if d.Stops {
			return record.AtFault(fmt.Errorf("the record is damaged (%s); nothing is done by it", d))
		}
	}
	switch i, c := v.Inception, f.Document; {
	case i.Name != c.Name:
		return record.AtFault(fmt.Errorf("the record is of cluster %s, and the document of %s", i.Name, c.Name))
	case i.Region != c.GCE.Region:
		return record.AtFault(fmt.Errorf("the record is of region %s, and gce.region of the document is %s", i.Region,
			c.GCE.Region))
	}
	return nil
}

func (f *Fleet) readLists(ctx context.Context, r *Reading) error {
	vms, err := f.Cloud.FleetVMs(ctx)
	if err != nil {
		return err
	}
	disks, err := f.Cloud.FleetDisks(ctx)
	if err != nil {
		return err
	}
	r.VMs = vms
	boots := map[replica.Place]bool{} // by the disks' zones and names
	for _, v := range vms {
		boots[replica.Place{Zone: v.Zone, Name: v.Boot.Name}] = true
		r.Inventory.VMs = append(r.Inventory.VMs, plan.VM{Place: v.Place, InstanceID: v.InstanceID, Status: v.Status,
			Image: v.Image, DataDisk: v.DataDisk, Replaces: v.Labels[ReplacesLabel], Differs: f.differences(v, disks),
			Young: time.Since(v.Created) < time.Hour, ExternalIP: v.ExternalIP})
	}
	for _, d := range disks {
		if boots[replica.Place{Zone: d.Zone, Name: d.Name}] {
			continue
		}
		out := plan.Disk{Zone: d.Zone, Name: d.Name, ID: d.ID, Replica: d.Labels[ReplicaLabel],
			Replaces: d.Labels[ReplacesLabel]}
		if len(d.Users) > 0 {
			out.User = d.Users[0]
		}
		r.Disks = append(r.Disks, out)
	}
	return nil
}
