package agent

import (
	"context"
	"time"

	"github.com/quorate/quorate/certs"
)

const (
	// renewPeriod is the longest time between two looks at the certificates: the clock may have been set, or have gone on while the VM stood.
	renewPeriod = 10 * time.Minute
	// renewRetry is the time after which it is tried again to read a bundle that is wanted.
	renewRetry = 30 * time.Second
)

// keepCertificates renews what is due until the returned function is called, and fetches a bundle that the boot went on without. It begins
// before the replica has its place in etcd: that may have to wait for others longer than a leaf lives, and whoever has let its own expire
// meanwhile is refused by those for whom it waited.
func (a *Agent) keepCertificates(ctx context.Context, in certified) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	in.makeBundle = false // there is one by now, and later there may be a newer one
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.renew(ctx, in)
	}()
	return func() { cancel(); <-done }
}

// renew looks at the certificates whenever it is time to, until ctx is done.
func (a *Agent) renew(ctx context.Context, in certified) {
	pause := untilRenewal(in.report, time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		report, err := a.renewOnce(ctx, in)
		if err != nil && ctx.Err() == nil {
			a.waits.hold("certificates-not-renewed", err, "It is tried again every half minute; what runs goes on until its certificates expire.")
			pause = renewRetry
			continue
		}
		a.waits.release("certificates-not-renewed")
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

// renewOnce brings the certificates up to date. A controller-manager that was started without the authority's key is started again
// with it once it is there.
func (a *Agent) renewOnce(ctx context.Context, in certified) (certs.Report, error) {
	report, err := certs.Ensure(a.request(in.recorded, generations{}))
	if err == nil && len(report.Pending) == 0 {
		return report, nil
	}
	found, err := a.bundleOnce(ctx, in.recorded, report.Generation)
	if err != nil {
		return report, err
	}
	report, err = certs.Ensure(a.request(in.recorded, found))
	a.logChanges(report)
	a.wantFit()
	return report, err
}
