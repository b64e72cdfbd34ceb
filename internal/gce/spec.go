package gce

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/setup"
)

// DiskSpec is a disk that is to be made.
type DiskSpec struct {
	Name string
	// Type is such as pd-ssd, in the disk's zone.
	Type   string
	SizeGB int64
	// Labels are the operator's and quorate's own, whose names begin with quorate-. The cluster's label is added.
	Labels map[string]string
}

// VMSpec is a VM that is to be made. It may forward packets, as routes for pods need. It moves at host maintenance, and
// starts again after a host error that is noticed within 90 s. It has a virtual TPM and integrity monitoring.
type VMSpec struct {
	Name string
	// MachineType is such as e2-standard-4, in the VM's zone.
	MachineType string
	// Image, Network and Subnetwork are partial links: projects/P/global/images/N (what ResolveImage returns),
	// projects/P/global/networks/N, projects/P/regions/R/subnetworks/N. No Subnetwork: the network chooses.
	Image, Network, Subnetwork string
	// ServiceAccount is an email. Its scope is cloud-platform: IAM alone decides.
	ServiceAccount string
	// BootDisk is deleted with its VM. Where it has no name, it has the VM's.
	BootDisk DiskSpec
	// DataDisk is the name of an existing disk in the VM's zone, which is kept when the VM goes. The VM sees it as
	// DeviceName.
	DataDisk, DeviceName string
	// ExternalIP is a reserved address of the region that the VM gets; empty: it has no external address.
	ExternalIP string
	// Tags are network tags.
	Tags []string
	// Labels are as a disk's. Metadata are the instance attributes.
	Labels, Metadata map[string]string
	// SecureBoot: only a signed image boots. The image that quorate bakes is not signed.
	SecureBoot bool
}

// hostErrorTimeout is how many seconds a silent host has until its VM is started on another one: GCE's least.
const hostErrorTimeout = 90

// labels are a spec's with the cluster's.
func (c *Operator) labels(given map[string]string) (map[string]string, error) {
	if other, ok := given[ClusterLabel]; ok && other != c.cluster {
		return nil, fmt.Errorf("label %s is %q; allowed: %q", ClusterLabel, other, c.cluster)
	}
	out := maps.Clone(given)
	if out == nil {
		out = map[string]string{}
	}
	out[ClusterLabel] = c.cluster
	return out, nil
}

// inZone is the partial link of what a zone has.
func (c *Compute) inZone(zone, kind, name string) string {
	return fmt.Sprintf("projects/%s/zones/%s/%s/%s", c.project, zone, kind, name)
}

func (c *Operator) disk(zone string, d DiskSpec) (*compute.Disk, error) {
	labels, err := c.labels(d.Labels)
	if err != nil {
		return nil, fmt.Errorf("make disk %s in %s: %w", d.Name, zone, err)
	}
	return &compute.Disk{Name: d.Name, SizeGb: d.SizeGB, Type: c.inZone(zone, "diskTypes", d.Type), Labels: labels}, nil
}

func (c *Operator) instance(zone string, v VMSpec) (*compute.Instance, error) {
	labels, err := c.labels(v.Labels)
	if err != nil {
		return nil, fmt.Errorf("make instance %s in %s: %w", v.Name, zone, err)
	}
	boot, err := c.labels(v.BootDisk.Labels)
	if err != nil {
		return nil, fmt.Errorf("make the boot disk of instance %s in %s: %w", v.Name, zone, err)
	}
	out := &compute.Instance{
		Name: v.Name, MachineType: c.inZone(zone, "machineTypes", v.MachineType), Labels: labels, CanIpForward: true,
		Metadata:          &compute.Metadata{},
		NetworkInterfaces: []*compute.NetworkInterface{{Network: v.Network, Subnetwork: v.Subnetwork}},
		Disks: []*compute.AttachedDisk{{
			Boot: true, AutoDelete: true, InitializeParams: &compute.AttachedDiskInitializeParams{
				DiskName: v.BootDisk.Name, SourceImage: v.Image, DiskSizeGb: v.BootDisk.SizeGB, Labels: boot},
		}},
		Scheduling: &compute.Scheduling{OnHostMaintenance: "MIGRATE", AutomaticRestart: new(true),
			HostErrorTimeoutSeconds: hostErrorTimeout},
		ShieldedInstanceConfig: &compute.ShieldedInstanceConfig{EnableSecureBoot: v.SecureBoot, EnableVtpm: true,
			EnableIntegrityMonitoring: true, ForceSendFields: []string{"EnableSecureBoot"}},
	}
	if v.BootDisk.Type != "" {
		out.Disks[0].InitializeParams.DiskType = c.inZone(zone, "diskTypes", v.BootDisk.Type)
	}
	if v.DataDisk != "" {
		out.Disks = append(out.Disks, &compute.AttachedDisk{Source: c.inZone(zone, "disks", v.DataDisk),
			DeviceName: v.DeviceName, Mode: "READ_WRITE", ForceSendFields: []string{"AutoDelete"}})
	}
	if v.ServiceAccount != "" {
		out.ServiceAccounts = []*compute.ServiceAccount{{Email: v.ServiceAccount, Scopes: []string{setup.CloudScope}}}
	}
	if len(v.Tags) > 0 {
		out.Tags = &compute.Tags{Items: v.Tags}
	}
	for _, key := range slices.Sorted(maps.Keys(v.Metadata)) {
		out.Metadata.Items = append(out.Metadata.Items, &compute.MetadataItems{Key: key, Value: new(v.Metadata[key])})
	}
	return out, nil
}
