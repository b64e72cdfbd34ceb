package fleet

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/replica"
)

// differences are the fields in which a VM is not as the document would have it made, but for its image. What the
// document leaves to Google may be anything, and so may labels and attributes that it does not name.
func (f *Fleet) differences(v gce.FleetVM, disks []gce.FleetDisk) []plan.Difference {
	c := comparison{place: v.Place}
	want := f.vmSpec(plan.Step{Place: v.Place})
	c.field("gce.machineType", v.MachineType, want.MachineType)
	c.disk("gce.bootDisk.", v.Boot.Type, v.Boot.SizeGB, want.BootDisk)
	c.field("gce.serviceAccount", v.ServiceAccount, want.ServiceAccount)
	c.field(plan.NetworkField, v.Network, want.Network)
	c.field("gce.subnetwork", v.Subnetwork, want.Subnetwork)
	if found, wanted := listed(v.Tags), listed(want.Tags); found != wanted {
		c.add("gce.tags", found, wanted)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Document.GCE.Labels)) {
		c.text("gce.labels."+name, v.Labels[name], want.Labels[name])
	}
	for _, name := range slices.Sorted(maps.Keys(want.Metadata)) {
		c.attribute(name, v.Metadata[name], want.Metadata[name])
	}
	at := slices.IndexFunc(disks, func(d gce.FleetDisk) bool { return d.Zone == v.Place.Zone && d.Name == v.DataDisk })
	if at >= 0 {
		c.disk(plan.DataDiskFields, disks[at].Type, disks[at].SizeGB, f.diskSpec(plan.Step{}))
	}
	return c.found
}

// comparison collects what differs of one VM.
type comparison struct {
	place replica.Place
	found []plan.Difference
}

func (c *comparison) add(field, found, wanted string) {
	c.found = append(c.found, plan.Difference{Replica: c.place, Field: field, Found: found, Wanted: wanted})
}

func (c *comparison) text(field, found, wanted string) {
	if found != wanted {
		c.add(field, found, wanted)
	}
}

// field compares what the document need not give.
func (c *comparison) field(field, found, wanted string) {
	if wanted != "" {
		c.text(field, found, wanted)
	}
}

func (c *comparison) disk(fields, kind string, sizeGB int64, want gce.DiskSpec) {
	c.field(fields+"type", kind, want.Type)
	if want.SizeGB > 0 {
		c.field(fields+"sizeGB", strconv.FormatInt(sizeGB, 10), strconv.FormatInt(want.SizeGB, 10))
	}
}

// attribute compares an instance attribute: of two Cluster documents each field, but of section gce only what agents
// read. So a comment that is new is no difference.
func (c *comparison) attribute(name, found, wanted string) {
	field := "metadata." + name
	switch found {
	case wanted:
		return
	case "":
		c.add(field, "", shortly(wanted))
		return
	}
	before, errBefore := document(name, found)
	after, errAfter := document(name, wanted)
	if errBefore != nil || errAfter != nil {
		c.add(field, shortly(found), shortly(wanted))
		return
	}
	for _, d := range replica.Changes(readByAgents(before), readByAgents(after)) {
		if !strings.HasPrefix(d.Field, "gce.") || strings.HasPrefix(d.Field, "gce.loadBalancer.") {
			c.add(field+"."+d.Field, d.Before, d.After)
		}
	}
}

// readByAgents is a document whose section gce is there: without one there is no load balancer.
func readByAgents(c *replica.Cluster) *replica.Cluster {
	if c.GCE == nil {
		c.GCE = &replica.GCE{LoadBalancer: replica.LoadBalancer{Type: replica.NoBalancer}}
	}
	return c
}

func document(name, text string) (*replica.Cluster, error) {
	return replica.Load(replica.Source{Name: name, Data: []byte(text)})
}

// shortly stands for a text of many lines.
func shortly(text string) string { return "a text of " + strconv.Itoa(len(text)) + " bytes" }

func listed(tags []string) string { return strings.Join(slices.Sorted(slices.Values(tags)), ",") }
