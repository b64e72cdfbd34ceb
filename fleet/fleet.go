package fleet

import (
	"context"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// Cloud is the Compute API, for one cluster's VMs and disks. A list is whole or it is an error. To make what is there
// already, and to delete what is gone, is done; what merely has its name is an error. It retries by itself.
type Cloud interface {
	FleetVMs(ctx context.Context) ([]gce.FleetVM, error)
	FleetDisks(ctx context.Context) ([]gce.FleetDisk, error)
	ResolveImage(ctx context.Context, image string) (string, error)
	InsertDisk(ctx context.Context, zone string, d gce.DiskSpec) error
	InsertVM(ctx context.Context, zone string, v gce.VMSpec) error
	DeleteVM(ctx context.Context, p replica.Place, instanceID string) error
	DeleteDisk(ctx context.Context, zone, name, diskID string) error
	// Surroundings are the resources that are wanted around the masters, and those of them that are there.
	Surroundings(ctx context.Context, s gce.Surroundings) (wanted, there []gce.Resource, err error)
	InsertResource(ctx context.Context, r gce.Resource) error
	DeleteResource(ctx context.Context, r gce.Resource) error
	// IsHealthy says whether a VM passes the health check of the load balancer of a name.
	IsHealthy(ctx context.Context, name string, p replica.Place) (bool, error)
	Addresses
}

// Addresses are who has the endpoint's address of a load balancer on demand, and who is attached to its groups. To give
// what a VM has, and to take what it has not, is done. It retries by itself.
type Addresses interface {
	GiveAddress(ctx context.Context, p replica.Place, instanceID, address string) error
	TakeAddress(ctx context.Context, p replica.Place, instanceID, address string) error
	// IsAttached says whether a VM is in the endpoint group of a name in its zone.
	IsAttached(ctx context.Context, group string, p replica.Place) (bool, error)
}

// Cluster is the cluster's bucket: the record, and the replicas' reports. It retries by itself.
type Cluster interface {
	View(ctx context.Context) (record.View, error)
	// CreateOrder gives an order its number. After an error it may have been written.
	CreateOrder(ctx context.Context, o record.Order) (record.Order, error)
	// All are the reports of all replicas, with the times at which the store got them.
	All(ctx context.Context) ([]report.Sighting, error)
}

// Fleet is one cluster's VMs, as the operator's commands reach them.
type Fleet struct {
	Cloud   Cloud
	Cluster Cluster
	// Document is the Cluster document, which has a section gce.
	Document *replica.Cluster
	// Metadata are the instance attributes of each master. DataDevice is the device name by which it mounts its data
	// disk.
	Metadata   map[string]string
	DataDevice string
	// By names the person who gives the orders.
	By string
	// Begin writes the record's inception. It is asked only where there is none; after an error it may be there.
	Begin func(context.Context) error
}
