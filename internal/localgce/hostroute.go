package localgce

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/localgce/names"
	"github.com/quorate/quorate/internal/localgce/network"
)

// freeHostRange refuses a range that any route or address of the host touches: two owners of one range would take each
// other's packets. A project whose process died is no owner: what it left on the range is removed, and its files stay.
func freeHostRange(ctx context.Context, c network.Config) error {
	taken, err := network.HostRangeTaken(ctx, c)
	if err != nil || taken == nil {
		return err
	}
	state, ok := names.NamedByLink(taken.Device)
	if ok {
		if err := sweepDead(ctx, names.For(state)); err != nil && !errors.Is(err, names.ErrUp) {
			return fmt.Errorf("clean up after the project of %s, whose process has died: %w", state, err)
		}
		if taken, err = network.HostRangeTaken(ctx, c); err != nil || taken == nil {
			return err
		}
	}
	err = fmt.Errorf("subnet %s: the range is in use on this machine: %s on %s; choose a free one with --subnet",
		c.Subnet, taken.Prefix, taken.Device)
	if ok {
		err = fmt.Errorf("%w, or end the project of %s", err, state)
	}
	return err
}
