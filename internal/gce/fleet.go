package gce

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/replica"
)

// FleetVM is a VM of the cluster with what a plan needs to know of it.
type FleetVM struct {
	replica.VM
	Labels map[string]string
	// Image is what its boot disk was made of, as projects/P/global/images/N; empty: of none, or of one that is
	// deleted.
	Image string
	// DataDisk is the name of its data disk; empty: it has none.
	DataDisk string
	// MachineType is such as e2-standard-4.
	MachineType string
	// Created is by GCE's clock; zero: it does not say.
	Created time.Time
	// Boot is its boot disk: of its name, type and size what is known.
	Boot DiskSpec
	// Network and Subnetwork are partial links, as in VMSpec.
	Network, Subnetwork string
	// ExternalIP is its external address; empty: it has none.
	ExternalIP string
	// ServiceAccount is an email; empty: it has none.
	ServiceAccount string
	// Tags are its network tags, Metadata its instance attributes.
	Tags     []string
	Metadata map[string]string
}

// FleetDisk is a data disk of the cluster.
type FleetDisk struct {
	Zone, Name string
	// ID is GCE's numeric id, never given twice.
	ID     string
	Labels map[string]string
	// Type is such as pd-ssd.
	Type   string
	SizeGB int64
	// Users are the names of the VMs that it is attached to.
	Users []string
	// Created is by GCE's clock; zero: it does not say.
	Created time.Time
}

// FleetVMs lists every VM that carries the cluster's label, in whatever state. The list is whole or it is an error, as
// that of VMs. It needs compute.instances.list, compute.disks.list and compute.disks.get.
func (c *Operator) FleetVMs(ctx context.Context) ([]FleetVM, error) {
	var out []FleetVM
	boots := map[string]string{} // the boot disks' links, by VM
	_, err := c.pages(ctx, "the instances of cluster "+c.cluster, func(ctx context.Context, api *compute.Service,
		token string) (page, error) {
		list, err := api.Instances.AggregatedList(c.project).Context(ctx).Filter(c.labelFilter()).PageToken(token).
			Do(partialSuccess)
		if err != nil {
			return page{}, err
		}
		var found []FleetVM
		problems, err := c.eachInstance(list, func(vm replica.VM, i *compute.Instance) {
			found = append(found, fleetVM(vm, i))
			boots[vm.InstanceID] = bootDisk(i)
		})
		return page{next: list.NextPageToken, problems: problems, take: func() { out = append(out, found...) }}, err
	})
	if err != nil {
		return nil, err
	}
	known, err := c.bootDisks(ctx)
	if err != nil {
		return nil, err
	}
	for n := range out {
		link := boots[out[n].InstanceID]
		if link == "" {
			continue
		}
		boot, listed := known[partial(link)]
		if !listed { // it does not carry the label
			if boot, err = c.bootDiskAt(ctx, link); err != nil {
				return nil, fmt.Errorf("find the boot disk of instance %s: %w", out[n].Place, err)
			}
		}
		out[n].Image, out[n].Boot = boot.image, boot.DiskSpec
	}
	return out, nil
}

func fleetVM(vm replica.VM, i *compute.Instance) FleetVM {
	out := FleetVM{VM: vm, Labels: i.Labels, MachineType: lastPart(i.MachineType), ExternalIP: externalIP(i)}
	if at, err := time.Parse(time.RFC3339, i.CreationTimestamp); err == nil {
		out.Created = at
	}
	for _, d := range i.Disks {
		if !d.Boot && out.DataDisk == "" {
			out.DataDisk = lastPart(d.Source)
		}
	}
	for _, nic := range i.NetworkInterfaces[:min(1, len(i.NetworkInterfaces))] {
		out.Network, out.Subnetwork = partial(nic.Network), partial(nic.Subnetwork)
	}
	for _, a := range i.ServiceAccounts[:min(1, len(i.ServiceAccounts))] {
		out.ServiceAccount = a.Email
	}
	if i.Tags != nil {
		out.Tags = i.Tags.Items
	}
	if i.Metadata != nil {
		out.Metadata = map[string]string{}
		for _, item := range i.Metadata.Items {
			if item.Value != nil {
				out.Metadata[item.Key] = *item.Value
			}
		}
	}
	return out
}

// boot is a boot disk, and the image that it was made of.
type boot struct {
	DiskSpec
	image string
}

func bootOf(d *compute.Disk) boot {
	return boot{DiskSpec{Name: d.Name, Type: lastPart(d.Type), SizeGB: d.SizeGb, Labels: d.Labels},
		partial(d.SourceImage)}
}

// bootDisk is the link of the disk that a VM boots from.
func bootDisk(i *compute.Instance) string {
	for _, d := range i.Disks {
		if d.Boot {
			return d.Source
		}
	}
	return ""
}

// bootDisks are all disks with the cluster's label, as if VMs booted from them, by their partial links.
func (c *Operator) bootDisks(ctx context.Context) (map[string]boot, error) {
	out := map[string]boot{}
	err := c.fleetDisks(ctx, func(_ string, d *compute.Disk) { out[partial(d.SelfLink)] = bootOf(d) })
	return out, err
}

// bootDiskAt is the disk with a link.
func (c *Operator) bootDiskAt(ctx context.Context, link string) (found boot, err error) {
	get, where, err := c.getter(link)
	if err != nil {
		return boot{}, err
	}
	err = c.ask(ctx, fmt.Sprintf("disk %s in %s", lastPart(link), where),
		func(ctx context.Context, api *compute.Service) error {
			d, err := get(ctx, api)
			if err != nil {
				return err
			}
			if d.Name != lastPart(link) {
				return finalError{fmt.Errorf("found a disk %q with id %d", d.Name, d.Id)}
			}
			found = bootOf(d)
			return nil
		})
	return found, err
}

// canBoot: the disk was made of an image, or of a snapshot of such a disk, which has an image's features or licenses.
func canBoot(d *compute.Disk) bool {
	return d.SourceImage != "" || len(d.GuestOsFeatures) > 0 || len(d.Licenses) > 0
}

// FleetDisks lists every data disk that carries the cluster's label, attached or not: all that are not made to boot
// from. One that a VM boots from all the same is known by FleetVM.Boot. The list is whole or it is an error. It needs
// compute.disks.list.
func (c *Operator) FleetDisks(ctx context.Context) ([]FleetDisk, error) {
	var out []FleetDisk
	var wrong error
	err := c.fleetDisks(ctx, func(zone string, d *compute.Disk) {
		if canBoot(d) {
			return
		}
		one, err := fleetDisk(zone, d)
		if err != nil {
			wrong = err
		}
		out = append(out, one)
	})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func fleetDisk(zone string, d *compute.Disk) (FleetDisk, error) {
	known, err := diskOf(zone, d)
	if err != nil {
		return FleetDisk{}, err
	}
	out := FleetDisk{Zone: zone, Name: d.Name, ID: strconv.FormatUint(d.Id, 10), Labels: d.Labels,
		Type: lastPart(d.Type), SizeGB: d.SizeGb}
	for _, u := range known.Users {
		out.Users = append(out.Users, u.Name)
	}
	if at, err := time.Parse(time.RFC3339, d.CreationTimestamp); err == nil {
		out.Created = at
	}
	return out, nil
}

// fleetDisks goes through all disks of zones that carry the cluster's label, once all pages are whole. A regional disk
// is no data disk of quorate's.
func (c *Operator) fleetDisks(ctx context.Context, take func(zone string, d *compute.Disk)) error {
	type one struct {
		zone string
		disk *compute.Disk
	}
	var all []one
	_, err := c.pages(ctx, "the disks of cluster "+c.cluster, func(ctx context.Context, api *compute.Service,
		token string) (page, error) {
		list, err := api.Disks.AggregatedList(c.project).Context(ctx).Filter(c.labelFilter()).PageToken(token).
			Do(partialSuccess)
		if err != nil {
			return page{}, err
		}
		var found []one
		problems, err := c.eachDisk(list, func(scope string, d *compute.Disk) error {
			if zone, ok := strings.CutPrefix(scope, "zones/"); ok && c.labelled(d.Labels) {
				found = append(found, one{zone, d})
			}
			return nil
		})
		return page{next: list.NextPageToken, problems: problems, take: func() { all = append(all, found...) }}, err
	})
	for _, d := range all {
		take(d.zone, d.disk)
	}
	return err
}
