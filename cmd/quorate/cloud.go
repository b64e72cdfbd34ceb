package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// cloudOpener opens what lies outside the VM, for its agent: as the VM's service account. It asks nobody: a restart
// must not depend on the cloud.
func cloudOpener(metadata *gce.Metadata) func(context.Context, replica.Identity, *replica.Cluster) (agent.Cloud,
	error) {
	return func(_ context.Context, self replica.Identity, c *replica.Cluster) (agent.Cloud, error) {
		return openCloud(metadata.Client(), self, c)
	}
}

// openRecord opens the record for an operator's command: as whoever Google's default credentials stand for.
func openRecord(c *replica.Cluster) (*record.Store, error) {
	return record.Open(c.Record.URL, c.Name, gce.UserClient())
}

func openCloud(google *http.Client, self replica.Identity, c *replica.Cluster) (agent.Cloud, error) {
	store, err := record.Open(c.Record.URL, c.Name, google)
	if err != nil {
		return agent.Cloud{}, err
	}
	bundles, err := record.OpenBundles(store, c.Seal.Key)
	if err != nil {
		return agent.Cloud{}, err
	}
	compute, err := gce.NewCompute(gce.ComputeConfig{Project: self.Project, Endpoint: c.Compute.Endpoint,
		Client: google})
	if err != nil {
		return agent.Cloud{}, err
	}
	api := &computeAPI{compute: compute, cluster: c.Name}
	out := agent.Cloud{Record: store, Bundles: bundles, Compute: api}
	if c.Etcd.DataDisk != "" {
		out.DiskID = func(ctx context.Context) (string, error) { return api.diskID(ctx, self, c.Etcd.DataDisk) }
	}
	return out, nil
}

// computeAPI speaks the membership's words to the Compute API.
type computeAPI struct {
	compute *gce.Compute
	cluster string
}

// VMs lists the VMs of the cluster.
func (a *computeAPI) VMs(ctx context.Context) ([]etcdmember.VM, time.Time, error) {
	list, at, err := a.compute.Instances(ctx, a.cluster)
	if err != nil {
		return nil, time.Time{}, err
	}
	out := make([]etcdmember.VM, len(list))
	for i, vm := range list {
		out[i] = vmOf(vm)
	}
	return out, at, nil
}

// VM finds the VM of a place by its name.
func (a *computeAPI) VM(ctx context.Context, p replica.Place) (etcdmember.VM, bool, error) {
	vm, found, err := a.compute.Instance(ctx, p)
	return vmOf(vm), found, err
}

func vmOf(i gce.Instance) etcdmember.VM {
	return etcdmember.VM{
		Place: i.Place, InstanceID: i.InstanceID, Status: i.Status, Addresses: i.Addresses, LastStop: i.LastStop,
	}
}

// Disks lists the cluster's disks.
func (a *computeAPI) Disks(ctx context.Context) ([]etcdmember.DataDisk, error) {
	list, err := a.compute.Disks(ctx, a.cluster)
	if err != nil {
		return nil, err
	}
	out := make([]etcdmember.DataDisk, len(list))
	for i, d := range list {
		out[i] = etcdmember.DataDisk{ID: d.ID, Users: d.Users}
	}
	return out, nil
}

// Disk finds a disk of the project by its id.
func (a *computeAPI) Disk(ctx context.Context, id string) (etcdmember.DataDisk, bool, error) {
	d, found, err := a.compute.Disk(ctx, id)
	return etcdmember.DataDisk{ID: d.ID, Users: d.Users}, found, err
}

// diskID is the Compute API's id of the disk that this VM knows under a device name. The VM is asked for by its name,
// so that no zone but its own has to answer, and the disk by the URL that its VM has for it, which is a regional disk's
// region.
func (a *computeAPI) diskID(ctx context.Context, self replica.Identity, device string) (string, error) {
	vm, found, err := a.compute.Instance(ctx, self.Place)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", fmt.Errorf("the Compute API has no instance %s", self.Place)
	case vm.InstanceID != self.InstanceID:
		return "", fmt.Errorf("the Compute API shows instance %s as %s; this is %s",
			vm.InstanceID, self.Place, self.InstanceID)
	}
	for _, d := range vm.Disks {
		if d.DeviceName == device {
			disk, err := a.compute.Attached(ctx, d)
			return disk.ID, err
		}
	}
	return "", fmt.Errorf("the Compute API shows no disk with the device name %q at %s", device, self.Place)
}
