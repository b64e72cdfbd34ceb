package fleet

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
)

// diskSpec is the data disk that a step makes.
func (f *Fleet) diskSpec(s plan.Step) gce.DiskSpec {
	d := f.Document.GCE.DataDisk
	return gce.DiskSpec{Name: s.Disk, Type: d.Type, SizeGB: d.SizeGB,
		Labels: f.labels(ReplicaLabel, s.Place.Name, ReplacesLabel, s.Replaces)}
}

// vmSpec is the VM that a step makes.
func (f *Fleet) vmSpec(s plan.Step) gce.VMSpec {
	g := f.Document.GCE
	v := gce.VMSpec{Name: s.Place.Name, MachineType: g.MachineType, Image: s.Image, ServiceAccount: g.ServiceAccount,
		Network:  linkTo(g.Network, "projects/"+g.Project+"/global/networks/"),
		BootDisk: gce.DiskSpec{Type: g.BootDisk.Type, SizeGB: g.BootDisk.SizeGB, Labels: f.labels()},
		DataDisk: s.Disk, DeviceName: f.DataDevice, ExternalIP: s.Address, Tags: g.Tags,
		Labels: f.labels(ReplacesLabel, s.Replaces), Metadata: maps.Clone(f.Metadata)}
	if g.Subnetwork != "" {
		v.Subnetwork = linkTo(g.Subnetwork, fmt.Sprintf("projects/%s/regions/%s/subnetworks/", g.Project, g.Region))
	}
	return v
}

// image is the image that a name means now, as the Compute API shows it at a VM.
func (f *Fleet) image(ctx context.Context, name string) (string, error) {
	return f.Cloud.ResolveImage(ctx, linkTo(name, "projects/"+f.Document.GCE.Project+"/global/images/"))
}

// linkTo completes a name to the link that Google knows it by.
func linkTo(name, folder string) string {
	if strings.HasPrefix(name, "projects/") {
		return name
	}
	return folder + name
}

// labels are the operator's and pairs of quorate's own; those without a value are left out.
func (f *Fleet) labels(pairs ...string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, f.Document.GCE.Labels)
	for n := 0; n < len(pairs); n += 2 {
		if pairs[n+1] != "" {
			out[pairs[n]] = pairs[n+1]
		}
	}
	return out
}
