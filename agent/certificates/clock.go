package certificates

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	clockWrong = "clock-wrong"
	clockNext  = "Correct the clock: it is compared again every second. A right one needs an answer of the metadata " +
		"server."
)

// errClock is in the error where this VM's clock is wrong, or nothing shows that it is right.
var errClock = errors.New("the bundle is made once and for all, and only by a clock that is right")

// checkClock compares this VM's clock with the metadata server's. A bundle of a clock that is ahead is of no use to
// anybody until its date has come, and one of a clock that is years behind may have ended; and no other replaces it.
func (c *Certificates) checkClock(ctx context.Context) error {
	at, err := c.cfg.Clock.Time(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errClock, err)
	}
	now := time.Now()
	if apart := now.Sub(at); apart.Abs() > clockTolerance {
		return fmt.Errorf("%w: this VM's says %s, the metadata server's %s", errClock,
			now.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
	}
	return nil
}
