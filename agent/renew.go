package agent

import (
	"context"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/backoff"
)

// keepCertificates renews what is due until the returned function is called, and fetches a bundle that the boot went on
// without. It begins before the replica has its place in etcd: that may have to wait for others longer than a leaf
// lives, and whoever has let its own expire meanwhile is refused by those for whom it waited.
func (a *Agent) keepCertificates(ctx context.Context, in certified) (stop func()) {
	in.makeBundle = false // there is one by now, and later there may be a newer one
	return background(ctx, func(ctx context.Context) { a.renew(ctx, in) })
}

// renew checks the certificates whenever they are due, until ctx is done.
func (a *Agent) renew(ctx context.Context, in certified) {
	retry := backoff.Backoff{First: firstRenewRetry, Most: renewRetry}
	pause := untilRenewal(in.report, time.Now())
	if in.lacking {
		pause = retry.Next()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		report, err := a.renewOnce(ctx, in)
		if err != nil && ctx.Err() == nil {
			a.waits.HoldFor(certificatesNotRenewed, err, certificatesNext)
			pause = retry.Next()
			continue
		}
		retry.Reset()
		a.waits.Release(certificatesNotRenewed)
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
func (a *Agent) renewOnce(ctx context.Context, in certified) (certs.Report, error) {
	report, err := a.ensure(in.recorded, generations{})
	if !wantsBundle(report, err) {
		return report, err
	}
	found, err := a.bundleOnce(ctx, in.recorded, report.Generation)
	if err != nil {
		return report, err
	}
	report, err = a.ensure(in.recorded, found)
	a.logChanges(report)
	a.wantFit()
	return report, err
}
