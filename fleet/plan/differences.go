package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// The fields whose differences no new VM mends: a VM of another network would reach no other master, and a data disk is
// kept.
const (
	NetworkField   = "gce.network"
	DataDiskFields = "gce.dataDisk."
	DataDiskSize   = DataDiskFields + "sizeGB"
)

// Difference is a field of the Cluster document in which a replica's VM is not as the document says. Its JSON keys are
// stable.
type Difference struct {
	Replica replica.Place `json:"replica"`
	Field   string        `json:"field"`
	// Found and Wanted are empty where the VM has, or is to have, no such thing.
	Found  string `json:"found"`
	Wanted string `json:"wanted"`
}

// differences are the fields in which a VM is not as it is wanted.
func (w Wish) differences(v VM) (out []Difference) {
	if v.Image != w.Image {
		out = append(out, Difference{Replica: v.Place, Field: "gce.image", Found: v.Image, Wanted: w.Image})
	}
	return append(out, v.Differs...)
}

// kept: the difference stays when the VM is made anew.
func (d Difference) kept() bool { return strings.HasPrefix(d.Field, DataDiskFields) }

// grows says whether a data disk is to become larger, or smaller. false, false: it is about something else.
func (d Difference) grows() (larger, smaller bool) {
	found, errFound := strconv.ParseInt(d.Found, 10, 64)
	wanted, errWanted := strconv.ParseInt(d.Wanted, 10, 64)
	if d.Field != DataDiskSize || errFound != nil || errWanted != nil {
		return false, false
	}
	return wanted > found, wanted < found
}

// noSmallerDisk refuses a document by which a data disk that is there would shrink: Google makes none smaller. Who adds
// or replaces a replica makes a disk, which may be smaller than the others.
func (b *builder) noSmallerDisk() error {
	for _, p := range b.staying(replica.Place{}) {
		v, _ := b.vm(p)
		for _, d := range v.Differs {
			if _, smaller := d.grows(); smaller {
				return refuse(SmallerDisk, "Give the document "+d.Found+" or more; or replace each replica by one with "+
					"a disk of its own ('quorate replace NAME').", "%s is %s, and data disk %s of %s has %s: a disk "+
					"cannot be made smaller.", d.Field, d.Wanted, v.DataDisk, p, d.Found)
			}
		}
	}
	return nil
}

// resolveRoll names the VMs that are to be made anew. So a command makes none twice, even where Google shows something
// else than it was asked for.
func (w Wish) resolveRoll(i Inventory) Wish {
	w.Old = nil
	for _, v := range i.VMs {
		if slices.ContainsFunc(w.differences(v), func(d Difference) bool { return !d.kept() }) {
			w.Old = append(w.Old, v.InstanceID)
		}
	}
	return w
}

// isOld: the VM is one of those that are to be made anew.
func (w Wish) isOld(v VM) bool { return slices.Contains(w.Old, v.InstanceID) }

// showDifferences puts what differs into the plan, or refuses what no new VM mends.
func (b *builder) showDifferences() error {
	if err := b.noSmallerDisk(); err != nil {
		return err
	}
	for _, p := range b.staying(replica.Place{}) {
		v, there := b.vm(p)
		if !there {
			continue
		}
		for _, d := range b.differences(v) {
			switch {
			case d.Field == NetworkField:
				return refuse(OtherNetwork, "Give the document the network that the masters are in.",
					"VM %s is in %s, and the document says %s: a VM there would not reach the others.", p, d.Found, d.Wanted)
			case d.kept():
				b.warn("%s of %s is %s, and the document says %s: its data disk is kept as it is.%s", d.Field, p,
					d.Found, d.Wanted, resizing(d, v))
			default:
				b.plan.Differences = append(b.plan.Differences, d)
			}
		}
	}
	return nil
}

// resizing is how a data disk gets as large as the document says. The master's image grows the file system by itself.
func resizing(d Difference, v VM) string {
	if larger, _ := d.grows(); !larger {
		return ""
	}
	return " To make it larger, while all goes on: gcloud compute disks resize " + v.DataDisk + " --zone=" + v.Zone +
		" --size=" + d.Wanted + "GB"
}

// allAsWanted refuses to call a roll done while a VM is not as it is wanted.
func (b *builder) allAsWanted() error {
	if len(b.plan.Steps) > 0 || len(b.plan.Differences) == 0 {
		return nil
	}
	d := b.plan.Differences[0]
	return refuse(StillDiffers, "Run the command again; if it says the same, give the document what was found.",
		"VM %s was made by this command or meanwhile, and its %s is %q, not %q.", d.Replica, d.Field, d.Found, d.Wanted)
}
