package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/agent/endpoint"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record/bucket"
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

func openCloud(google *http.Client, self replica.Identity, c *replica.Cluster) (agent.Cloud, error) {
	store, err := bucket.Open(c.Record.URL, c.Name, google)
	if err != nil {
		return agent.Cloud{}, err
	}
	bundles, err := bucket.OpenBundles(store, c.Seal.Key)
	if err != nil {
		return agent.Cloud{}, err
	}
	compute, err := gce.NewCompute(gce.ComputeConfig{Project: self.Project, Cluster: c.Name,
		Region: self.Region(), Endpoint: c.Compute.Endpoint, Client: google})
	if err != nil {
		return agent.Cloud{}, err
	}
	reports, err := bucket.OpenReports(c.Record.URL, c.Name, google)
	if err != nil {
		return agent.Cloud{}, err
	}
	out := agent.Cloud{Record: store, Bundles: bundles, Compute: compute, Reports: reports,
		Balancer: balancer{compute, self}}
	if c.Etcd.DataDisk != "" {
		out.DataDisk = func(ctx context.Context) (replica.Disk, error) {
			return dataDisk(ctx, compute, self, c.Etcd.DataDisk)
		}
	}
	return out, nil
}

// balancer is an agent's VM in the endpoint group of its zone.
type balancer struct {
	compute *gce.Compute
	self    replica.Identity
}

// Attach implements agent.Balancer.
func (b balancer) Attach(ctx context.Context, group string) (attached bool, err error) {
	attached, err = b.compute.Attach(ctx, group, gce.Endpoint{Place: b.self.Place, Address: b.self.Address()})
	var refused *gce.Refused
	if errors.As(err, &refused) && refused.Reason == gce.NotFound {
		err = &endpoint.NoGroup{Err: err}
	}
	return attached, err
}

// Detach implements agent.Balancer.
func (b balancer) Detach(ctx context.Context, group string) (detached bool, err error) {
	return b.compute.Detach(ctx, group, b.self.Place)
}

// dataDisk is the disk that this VM knows under a device name, as the Compute API shows it. The VM is asked for by its
// name, so that no zone but its own has to answer, and the disk by the URL that its VM has for it, which is a regional
// disk's region.
func dataDisk(ctx context.Context, compute *gce.Compute, self replica.Identity, device string) (replica.Disk,
	error) {
	vm, found, err := compute.VM(ctx, self.Place)
	switch {
	case err != nil:
		return replica.Disk{}, err
	case !found:
		return replica.Disk{}, fmt.Errorf("the Compute API has no instance %s", self.Place)
	case vm.InstanceID != self.InstanceID:
		return replica.Disk{}, fmt.Errorf("the Compute API shows instance %s as %s; this is %s",
			vm.InstanceID, self.Place, self.InstanceID)
	}
	for _, d := range vm.Disks {
		if d.DeviceName == device {
			return compute.Attached(ctx, d)
		}
	}
	return replica.Disk{}, fmt.Errorf("the Compute API shows no disk with the device name %q at %s", device,
		self.Place)
}
