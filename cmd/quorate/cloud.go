package main

import (
	"context"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// cloudOpener opens what lies outside the VM. It asks nobody: a restart must not depend on the cloud.
func cloudOpener(metadata *gce.Metadata) func(context.Context, replica.Identity, *replica.Cluster) (agent.Cloud, error) {
	return func(ctx context.Context, self replica.Identity, c *replica.Cluster) (agent.Cloud, error) {
		return openCloud(ctx, metadata, self, c)
	}
}

func openCloud(ctx context.Context, metadata *gce.Metadata, self replica.Identity, c *replica.Cluster) (agent.Cloud, error) {
	store, err := record.Open(ctx, c.Record.URL, c.Name)
	if err != nil {
		return agent.Cloud{}, err
	}
	bundles, err := record.OpenBundles(store, c.Seal.Key)
	if err != nil {
		return agent.Cloud{}, err
	}
	compute, err := gce.NewCompute(gce.ComputeConfig{Project: self.Project, Endpoint: c.Compute.Endpoint, Metadata: metadata})
	if err != nil {
		return agent.Cloud{}, err
	}
	api := &computeAPI{compute: compute, cluster: c.Name}
	return agent.Cloud{Record: store, Bundles: bundles, Compute: api, DiskID: func(ctx context.Context) string {
		return api.diskID(ctx, self, c.Etcd.DataDisk)
	}}, nil
}

// computeAPI speaks the membership's words to the Compute API.
type computeAPI struct {
	compute *gce.Compute
	cluster string
}

// VMs lists the VMs of the cluster.
func (a *computeAPI) VMs(ctx context.Context) ([]etcdmember.VM, error) {
	list, err := a.compute.Instances(ctx, a.cluster)
	if err != nil {
		return nil, err
	}
	out := make([]etcdmember.VM, len(list))
	for i, vm := range list {
		out[i] = etcdmember.VM{Place: vm.Place, InstanceID: vm.InstanceID, Status: vm.Status, Addresses: vm.Addresses}
	}
	return out, nil
}

// VM finds the VM of a place by its name.
func (a *computeAPI) VM(ctx context.Context, p replica.Place) (etcdmember.VM, bool, error) {
	vm, found, err := a.compute.Instance(ctx, p)
	return etcdmember.VM{Place: vm.Place, InstanceID: vm.InstanceID, Status: vm.Status, Addresses: vm.Addresses}, found, err
}

// DiskIDs lists the ids of the cluster's disks.
func (a *computeAPI) DiskIDs(ctx context.Context) ([]string, error) {
	list, err := a.compute.Disks(ctx, a.cluster)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(list))
	for i, d := range list {
		out[i] = d.ID
	}
	return out, nil
}

// HasDisk finds a disk of the project by its id.
func (a *computeAPI) HasDisk(ctx context.Context, id string) (bool, error) {
	return a.compute.HasDisk(ctx, id)
}

// diskTimeout bounds the question for the data disk's id. Without an answer the boot goes on: a disk that was rolled back is then
// found by its incarnation and its marks.
const diskTimeout = 2 * time.Second

// diskID is the Compute API's id of the disk that this VM knows under a device name; empty where it cannot be known.
func (a *computeAPI) diskID(ctx context.Context, self replica.Identity, device string) string {
	if device == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, diskTimeout)
	defer cancel()
	list, err := a.compute.Instances(ctx, a.cluster)
	if err != nil {
		return ""
	}
	for _, vm := range list {
		if vm.Place != self.Place || vm.InstanceID != self.InstanceID {
			continue
		}
		for _, d := range vm.Disks {
			if d.DeviceName != device {
				continue
			}
			if id, found, err := a.compute.Disk(ctx, self.Zone, d.Name); err == nil && found {
				return id
			}
		}
	}
	return ""
}
