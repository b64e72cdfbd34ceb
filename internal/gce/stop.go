package gce

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
)

// operationPeriod is the time between two polls of an operation that goes on.
const operationPeriod = time.Second

// StopInstance stops a VM and returns when that is over; the guest is asked first, and after some 90 s its power is
// cut. It is named by its id, so another VM that has taken its name is not meant. One that does not exist is stopped as
// well. The client must be one that Stops; it needs the permission compute.instances.stop.
func (c *Compute) StopInstance(ctx context.Context, p replica.Place, instanceID string) error {
	asked := fmt.Sprintf("the stop of instance %s (%s in %s)", instanceID, p.Name, p.Zone)
	name, request := "", uuid.NewString() // a try whose answer was lost is not a second order
	for {
		var op *compute.Operation
		err := c.ask(ctx, asked, func(ctx context.Context, api *compute.Service) (err error) {
			if name == "" {
				// Without the first a VM with Local SSD cannot be stopped, without the other one with a graceful
				// shutdown goes on for up to an hour.
				op, err = api.Instances.Stop(c.project, p.Zone, instanceID).DiscardLocalSsd(true).
					NoGracefulShutdown(true).RequestId(request).Context(ctx).Do()
			} else {
				op, err = api.ZoneOperations.Get(c.project, p.Zone, name).Context(ctx).Do()
			}
			return err
		})
		switch {
		case isMissing(err, "instances", instanceID):
			return nil
		case err != nil:
			return err
		case op.Status == "DONE":
			return failureOf(op, asked)
		}
		name = op.Name
		if err := backoff.Sleep(ctx, operationPeriod); err != nil {
			return fmt.Errorf("wait for %s: %w", asked, err)
		}
	}
}

// failureOf is what an operation that is over failed with.
func failureOf(op *compute.Operation, asked string) error {
	if op.Error == nil || len(op.Error.Errors) == 0 {
		return nil
	}
	e := op.Error.Errors[0]
	return fmt.Errorf("%s: found %s: %q", asked, e.Code, shorten(e.Message))
}
