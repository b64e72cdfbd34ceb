package gce

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
)

// DeleteVM deletes the VM with a numeric id, and its boot disk with it; it returns when that is over. The guest is
// asked to stop first. Where nothing of its name is there, it is done; where another VM has that name by now, *Changed
// is returned, and that one is left alone. What Google refuses for a known reason is a *Refused, and so is a VM that
// would take another disk than its boot disk with it (DiskWouldGo). A zone or a project that is missing is an error.
// It needs compute.instances.delete and compute.instances.get.
func (c *Operator) DeleteVM(ctx context.Context, p replica.Place, instanceID string) error {
	return c.remove(ctx, resource{"instance", where{zone: p.Zone}, p.Name, instanceID, "instances", instanceID},
		func(ctx context.Context) (id uint64, found bool, err error) {
			i, found, err := c.getInstance(ctx, p.Zone, p.Name)
			if !found {
				return 0, found, err
			}
			return i.Id, true, keepsItsData(p, i)
		},
		func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error) {
			return api.Instances.Delete(c.project, p.Zone, instanceID).NoGracefulShutdown(true).RequestId(request).
				Context(ctx).Do()
		})
}

// keepsItsData refuses to delete a VM whose data disk would go with it.
func keepsItsData(p replica.Place, i *compute.Instance) error {
	for _, d := range i.Disks {
		if !d.Boot && d.AutoDelete && d.Type != "SCRATCH" {
			disk := lastPart(d.Source)
			return &Refused{Reason: DiskWouldGo, err: fmt.Errorf("delete instance %s: its disk %s would be deleted "+
				"with it; 'gcloud compute instances set-disk-auto-delete %s --zone=%s --disk=%s --no-auto-delete' "+
				"has it kept", p, disk, p.Name, p.Zone, disk)}
		}
	}
	return nil
}

// DeleteDisk deletes the disk with a numeric id, as DeleteVM. One that is attached to a VM is a *Refused for InUse. It
// needs compute.disks.delete and compute.disks.get.
func (c *Operator) DeleteDisk(ctx context.Context, zone, name, diskID string) error {
	return c.remove(ctx, resource{"disk", where{zone: zone}, name, diskID, "disks", diskID},
		func(ctx context.Context) (id uint64, found bool, err error) {
			d, found, err := c.getDisk(ctx, zone, name)
			if !found {
				return 0, found, err
			}
			return d.Id, true, nil
		},
		func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error) {
			return api.Disks.Delete(c.project, zone, diskID).RequestId(request).Context(ctx).Do()
		})
}

// resource is something that is to be deleted.
type resource struct {
	kind     string
	at       where
	name, id string
	// path is what links call its kind, ordered how the order names it.
	path, ordered string
}

// standing is what has a resource's name: its id, and why it must not be deleted.
type standing func(context.Context) (id uint64, found bool, err error)

// remove deletes what has an id. The name is asked for before, to see whether it is that one's; the order has the id,
// so that it cannot meet a successor. That nothing was found by the id is believed only where the name says so too.
// While another operation changes it, such as a deletion that was begun before, it waits.
func (c *Operator) remove(ctx context.Context, r resource, named standing, begin beginning) error {
	if n, err := strconv.ParseUint(r.id, 10, 64); err != nil || n == 0 {
		return fmt.Errorf("delete %s %s in %s: found id %q; allowed: a number", r.kind, r.name, r.at, r.id)
	}
	asked := fmt.Sprintf("deleting %s %s in %s (%s)", r.kind, r.name, r.at, r.id)
	pause := backoff.Backoff{First: firstPoll, Most: mostPoll}
	for {
		if gone, err := r.isGone(ctx, named); gone || err != nil {
			return err
		}
		err := c.carryOut(ctx, r.at, asked, begin)
		switch {
		case isMissing(err, r.path, r.ordered):
			if gone, errNamed := r.isGone(ctx, named); gone || errNamed != nil {
				return errNamed
			}
			return err
		case !isBusy(err):
			return explained(err)
		}
		if errWait := backoff.Sleep(ctx, pause.Next()); errWait != nil {
			return fmt.Errorf("wait for another operation: %w (last try: %w)", errWait, err)
		}
	}
}

// isGone asks by the name whether the resource is there no more. It is an error where another one is.
func (r resource) isGone(ctx context.Context, named standing) (bool, error) {
	id, found, err := named(ctx)
	switch now := strconv.FormatUint(id, 10); {
	case found && now != r.id:
		return false, &Changed{r.kind, r.at.String(), r.name, r.id, now}
	case err != nil:
		return false, explained(err)
	}
	return !found, nil
}
