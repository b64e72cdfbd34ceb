package gce

import (
	"context"
	"fmt"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/replica"
)

// StopInstance stops a VM and returns when that is over; the guest is asked first, and after some 90 s its power is
// cut. It is named by its id, so another VM that has taken its name is not meant. One that does not exist is stopped as
// well. The client must be one that Stops; it needs the permission compute.instances.stop.
func (c *Compute) StopInstance(ctx context.Context, p replica.Place, instanceID string) error {
	asked := fmt.Sprintf("the stop of instance %s (%s in %s)", instanceID, p.Name, p.Zone)
	err := c.carryOut(ctx, where{zone: p.Zone}, asked, func(ctx context.Context, api *compute.Service, request string) (
		*compute.Operation, error) {
		// Without the first a VM with Local SSD cannot be stopped, without the other one with a graceful shutdown goes
		// on for up to an hour.
		return api.Instances.Stop(c.project, p.Zone, instanceID).DiscardLocalSsd(true).NoGracefulShutdown(true).
			RequestId(request).Context(ctx).Do()
	})
	if isMissing(err, "instances", instanceID) {
		return nil
	}
	return err
}
