package plan

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// The fields whose differences no new VM mends: a VM of another network would reach no other master, and a data disk is
// kept.
const (
	NetworkField   = "gce.network"
	DataDiskFields = "gce.dataDisk."
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
				b.warn("%s of %s is %s, and the document says %s: its data disk is kept as it is.", d.Field, p, d.Found,
					d.Wanted)
			default:
				b.plan.Differences = append(b.plan.Differences, d)
			}
		}
	}
	return nil
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
