package gce

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/backoff"
)

// An operation that goes on is polled after these pauses. Most take some 5 to 60 s.
const firstPoll, mostPoll = 250 * time.Millisecond, 3 * time.Second

// beginning sends the request that begins an operation. request is its requestId: with the same one Google carries an
// order out once, however often it is sent.
type beginning func(ctx context.Context, api *compute.Service, request string) (*compute.Operation, error)

// where is what an operation or a resource is of: a zone, a region, or, empty, the whole project.
type where struct{ zone, region string }

// String names it in errors.
func (w where) String() string {
	switch {
	case w.zone != "":
		return w.zone
	case w.region != "":
		return w.region
	}
	return "the project"
}

// operation asks how far one is.
func (c *Compute) operation(ctx context.Context, api *compute.Service, at where, name string) (*compute.Operation,
	error) {
	switch {
	case at.zone != "":
		return api.ZoneOperations.Get(c.project, at.zone, name).Context(ctx).Do()
	case at.region != "":
		return api.RegionOperations.Get(c.project, at.region, name).Context(ctx).Do()
	}
	return api.GlobalOperations.Get(c.project, name).Context(ctx).Do()
}

// carryOut begins an operation, waits until it is over and returns what it failed with. asked names it in
// errors. It waits as long as ctx lets it; the operation goes on without us.
func (c *Compute) carryOut(ctx context.Context, at where, asked string, begin beginning) error {
	request := uuid.NewString() // a try whose answer was lost is not a second order
	var op *compute.Operation
	err := c.ask(ctx, asked, func(ctx context.Context, api *compute.Service) (err error) {
		op, err = begin(ctx, api, request)
		return err
	})
	pause := backoff.Backoff{First: firstPoll, Most: mostPoll}
	for err == nil {
		if err := ofKind(op.Kind, "compute#operation"); err != nil {
			return fmt.Errorf("ask %s for %s: %w", c.server(), asked, err)
		}
		if op.Status == "DONE" {
			return failureOf(op, asked)
		}
		name := op.Name
		if err := backoff.Sleep(ctx, pause.Next()); err != nil {
			return fmt.Errorf("wait for %s (operation %s, which goes on): %w", asked, name, err)
		}
		err = c.ask(ctx, asked, func(ctx context.Context, api *compute.Service) (err error) {
			op, err = c.operation(ctx, api, at, name)
			return err
		})
	}
	return err
}

// failedOperation is what an operation that is over failed with. code is such as QUOTA_EXCEEDED.
type failedOperation struct{ asked, code, text string }

// Error implements error.
func (f *failedOperation) Error() string {
	return fmt.Sprintf("%s: found %s: %q", f.asked, f.code, shorten(f.text))
}

// failureOf is what an operation that is over failed with.
func failureOf(op *compute.Operation, asked string) error {
	if op.Error == nil || len(op.Error.Errors) == 0 {
		return nil
	}
	e := op.Error.Errors[0]
	return &failedOperation{asked, e.Code, e.Message}
}
