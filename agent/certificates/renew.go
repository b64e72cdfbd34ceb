package certificates

import (
	"context"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/backoff"
)

// Renew renews what is due until ctx is done, and fetches a bundle that the boot went on without. It begins before the
// replica has its place in etcd: that may have to wait for others longer than a leaf lives, and whoever has let its own
// expire meanwhile is refused by those for whom it waited.
func (c *Certificates) Renew(ctx context.Context, issued Issued) {
	retry := backoff.Backoff{First: firstRenewRetry, Most: renewRetry}
	pause := untilRenewal(issued.Report, time.Now())
	if issued.Lacking {
		pause = retry.Next()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		report, err := c.renewOnce(ctx)
		if err != nil && ctx.Err() == nil {
			c.cfg.Waits.HoldFor(notRenewed, err, notRenewedNext)
			pause = retry.Next()
			continue
		}
		retry.Reset()
		c.cfg.Waits.Release(notRenewed)
		pause = untilRenewal(report, time.Now())
	}
}

// untilRenewal is how long certificates may be left alone.
func untilRenewal(report certs.Report, now time.Time) time.Duration {
	if len(report.Pending) > 0 {
		return bundlePause
	}
	if until := report.NextRenewal.Sub(now); until > 0 && until < renewPeriod {
		return until
	}
	return renewPeriod // also where something is overdue: that is left alone because its CA ends first
}

// renewOnce brings the certificates up to date. A controller-manager that was started without the authority's key is
// started again with it once it is there.
func (c *Certificates) renewOnce(ctx context.Context) (certs.Report, error) {
	report, err := c.ensure(generations{})
	if !wantsBundle(report, err) {
		return report, err
	}
	found, err := c.bundleOnce(ctx, false, report.Generation)
	if err != nil {
		return report, err
	}
	report, err = c.ensure(found)
	c.logChanges(report)
	c.cfg.Renewed()
	return report, err
}
