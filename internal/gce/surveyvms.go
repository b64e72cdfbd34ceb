package gce

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/setup"
)

const computeAPI = "the Compute API"

// machines asks for the region's zones, their VMs of this cluster, and the disks of these.
func (s *Survey) machines(ctx context.Context, f *setup.Facts) {
	zones := survey(ctx, s, computeAPI, "the zones of project "+s.conf.Project, func(ctx context.Context) (
		out []setup.Zone,
		err error) {
		err = s.compute.Zones.List(s.conf.Project).Pages(ctx, func(list *compute.ZoneList) error {
			for _, z := range list.Items {
				if lastPart(z.Region) == s.conf.Region {
					out = append(out, setup.Zone{Name: z.Name, Status: z.Status})
				}
			}
			return nil
		})
		return out, err
	})
	f.Zones = zones
	if zones.Fault != nil {
		f.VMs.Fault = zones.Fault
		return
	}
	begin := time.Now()
	listed := make([]setup.Asked[[]setup.VM], len(zones.Answer))
	var group errgroup.Group
	for n, z := range zones.Answer {
		group.Go(func() error { listed[n] = s.vms(ctx, z.Name); return nil })
	}
	_ = group.Wait() // none returns an error
	f.Took = time.Since(begin)
	for _, zone := range listed {
		if zone.Fault != nil {
			f.VMs.Fault = zone.Fault // a list with a hole proves nothing
		}
		f.VMs.Answer = append(f.VMs.Answer, zone.Answer...)
	}
	for n := range f.VMs.Answer {
		group.Go(func() error { s.disks(ctx, f.VMs.Answer[n].Disks); return nil })
	}
	_ = group.Wait()
}

func (s *Survey) vms(ctx context.Context, zone string) setup.Asked[[]setup.VM] {
	return survey(ctx, s, computeAPI, "the instances in "+zone, func(ctx context.Context) (out []setup.VM, err error) {
		err = s.compute.Instances.List(s.conf.Project, zone).Pages(ctx, func(list *compute.InstanceList) error {
			if w := list.Warning; w != nil && w.Code != "NO_RESULTS_ON_PAGE" {
				return fmt.Errorf("found only part of the list: %s %q", w.Code, shorten(w.Message))
			}
			for _, i := range list.Items {
				vm := s.vm(zone, i)
				if vm.Labelled || vm.Document {
					out = append(out, vm)
				}
			}
			return nil
		})
		return out, err
	})
}

// vm translates one instance.
func (s *Survey) vm(zone string, i *compute.Instance) setup.VM {
	vm := setup.VM{Place: replica.Place{Zone: zone, Name: i.Name}, Status: i.Status,
		Labelled: i.Labels[ClusterLabel] == s.conf.Cluster, Document: s.ours(i.Metadata)}
	for _, a := range i.ServiceAccounts { // one at most
		vm.Account, vm.Scopes = a.Email, a.Scopes
	}
	if c := i.Scheduling; c != nil {
		vm.Spot = c.Preemptible || c.ProvisioningModel == "SPOT"
		vm.Migrates = c.OnHostMaintenance == "MIGRATE"
		vm.Restarts = c.AutomaticRestart != nil && *c.AutomaticRestart
		vm.HostErrorTimeout = time.Duration(c.HostErrorTimeoutSeconds) * time.Second
	}
	vm.SecureBoot = i.ShieldedInstanceConfig != nil && i.ShieldedInstanceConfig.EnableSecureBoot
	if i.Tags != nil {
		vm.Tags = i.Tags.Items
	}
	if len(i.NetworkInterfaces) > 0 {
		nic := i.NetworkInterfaces[0]
		vm.Network, vm.Subnet = lastPart(nic.Network), lastPart(nic.Subnetwork)
		vm.Address, _ = netip.ParseAddr(nic.NetworkIP) // one that is not there is invalid
		vm.External = slices.ContainsFunc(nic.AccessConfigs, func(
			a *compute.AccessConfig) bool {
			return a.NatIP != ""
		})
	}
	for _, d := range i.Disks {
		vm.Disks = append(vm.Disks, diskAt(d))
	}
	return vm
}

// ours reports whether an instance has a document of this cluster.
func (s *Survey) ours(m *compute.Metadata) bool {
	if m == nil {
		return false
	}
	return slices.ContainsFunc(m.Items, func(i *compute.MetadataItems) bool {
		return i.Key == s.conf.Attribute && i.Value != nil && s.conf.ClusterOf(*i.Value) == s.conf.Cluster
	})
}

func diskAt(d *compute.AttachedDisk) setup.Disk {
	out := setup.Disk{Device: d.DeviceName, Name: lastPart(d.Source), Boot: d.Boot, AutoDelete: d.AutoDelete}
	if parts := strings.Split(d.Source, "/"); len(parts) >= 4 {
		out.Where, out.Regional = parts[len(parts)-3], parts[len(parts)-4] == "regions"
	}
	return out
}

// disks asks for what each disk says of itself.
func (s *Survey) disks(ctx context.Context, disks []setup.Disk) {
	for n, d := range disks {
		if d.Boot {
			continue // nothing is judged about it
		}
		disks[n].Details = survey(ctx, s, computeAPI, "disk "+d.Name+" in "+d.Where,
			func(ctx context.Context) (out setup.DiskDetails, err error) {
				var disk *compute.Disk
				if d.Regional {
					disk, err = s.compute.RegionDisks.Get(s.conf.Project, d.Where, d.Name).Context(ctx).Do()
				} else {
					disk, err = s.compute.Disks.Get(s.conf.Project, d.Where, d.Name).Context(ctx).Do()
				}
				if err != nil {
					return out, err
				}
				out.Labelled, out.AccessMode = disk.Labels[ClusterLabel] == s.conf.Cluster, disk.AccessMode
				for _, u := range disk.Users {
					out.Users = append(out.Users, lastPart(u))
				}
				return out, nil
			})
	}
}
