package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/acts"
)

// certified is a replica with certificates. The bundle is nil where it was not needed, or could not be read and was not
// needed for what the disk lacks. The report is of the last check of the certificates.
type certified struct {
	recorded
	bundle *certs.Bundle
	report certs.Report
	// lacking says that the member has its certificates, and something else has not: that is tried again alongside the
	// rest of the boot.
	lacking bool
}

// certificatesNotRenewed is the wait for certificates, or what goes with them, that could not be issued or written.
const (
	certificatesNotRenewed = "certificates-not-renewed"
	certificatesNext       = "It is tried again, at most half a minute later; what runs goes on until its " +
		"certificates expire."
)

// certify makes sure that the disk has every leaf of this replica. The holder of the first epoch's claim makes the
// bundle; all read it back. Where the member has its own, the boot goes on whatever else is lacking: a kubeconfig that
// cannot be written must not keep a voter from voting.
func (a *Agent) certify(ctx context.Context, in recorded) (certified, error) {
	out := certified{recorded: in}
	var err error
	out.report, err = a.ensure(in, generations{})
	if wantsBundle(out.report, err) {
		needed := err != nil && a.memberCertified(in) != nil
		found, bundleErr := a.bundle(ctx, in, out.report.Generation, needed)
		if bundleErr != nil {
			return out, bundleErr
		}
		if found.bundle != nil {
			out.report, err = a.ensure(in, found)
			a.logChanges(out.report)
		}
		if err == nil {
			out.bundle = found.bundle
		}
	}
	if err == nil {
		return out, nil
	}
	if a.memberCertified(in) != nil {
		return out, err
	}
	out.lacking = true
	a.waits.HoldFor(certificatesNotRenewed, err, certificatesNext)
	return out, nil
}

// ensure is certs.Ensure, whose list of what expires is kept for the status. An error may leave the list short: what
// was found before stays then.
func (a *Agent) ensure(in recorded, g generations) (certs.Report, error) {
	report, err := certs.Ensure(a.request(in, g))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(report.Expiries) >= len(a.certificates) {
		a.certificates = report.Expiries
	}
	return report, err
}

// wantsBundle reports whether ensure, which had no bundle, would have done more with one.
func wantsBundle(report certs.Report, err error) bool {
	return errors.Is(err, certs.ErrBundleNeeded) || err == nil && len(report.Pending) > 0
}

// memberCertified says why etcd cannot run with what is on the disk: not with the leaves of another replica whose disk
// this was, nor of another cluster.
func (a *Agent) memberCertified(in recorded) error {
	return certs.Usable(a.request(in, generations{}), certs.EtcdServer, certs.EtcdPeerLeaf, certs.AgentEtcd)
}

// logChanges says what was written, one line a reason: a first boot writes thirty files for one.
func (a *Agent) logChanges(report certs.Report) {
	names := map[string][]string{}
	var reasons []string
	for _, c := range report.Changes {
		if names[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		names[c.Reason] = append(names[c.Reason], c.Name)
	}
	for _, reason := range reasons {
		a.cfg.Log.Info("certificates written", "reason", reason, "names", strings.Join(names[reason], " "))
	}
}

// generations is the bundle that this replica takes, and those before it, from the one on that its disk has seen. Both
// are empty where none is at hand.
type generations struct {
	bundle *certs.Bundle
	former []*certs.Bundle
}

func (a *Agent) request(in recorded, g generations) certs.Request {
	return certs.Request{
		Files: a.files, Bundle: g.bundle, Former: g.former, ClusterUID: in.membership.ClusterUID(),
		Identity: in.self, Cluster: in.cluster, Now: time.Now(), Owners: a.accounts.Owners(a.files),
	}
}

// bundle makes or reads the bundle. The disk has seen a generation of it, or none: 0. Where the bundle is not needed to
// go on, this gives up soon and without an error.
func (a *Agent) bundle(ctx context.Context, in recorded, seen uint64, needed bool) (generations, error) {
	if !needed {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, optionalBundle)
		defer cancel()
	}
	for {
		b, err := a.bundleOnce(ctx, in, seen)
		if err == nil {
			a.waits.Release(bundleUnreadable)
			a.waits.Release(clockWrong)
			return b, nil
		}
		if needed {
			a.holdForBundle(err)
		}
		select {
		case <-ctx.Done():
			if !needed {
				a.cfg.Log.Warn("go on without the bundle", "err", err.Error())
				return generations{}, nil
			}
			return generations{}, err
		case <-time.After(bundlePause):
		}
	}
}

const (
	bundleUnreadable = "bundle-unreadable"
	bundleRetry      = "Make the record readable: it is read again every second. A corrected seal.key counts from " +
		"the agent's next " +
		"start, within half a minute."
)

// holdForBundle says why a boot waits that cannot go on without the bundle: one of two reasons.
func (a *Agent) holdForBundle(err error) {
	if errors.Is(err, errClock) {
		a.waits.Release(bundleUnreadable)
		a.waits.HoldFor(clockWrong, err, clockNext)
		return
	}
	a.waits.Release(clockWrong)
	a.waits.HoldFor(bundleUnreadable, err, bundleRetry)
}

// bundleOnce makes the bundle where that is this replica's to do, and else reads it. A disk that has seen a bundle
// never leads to another one, also where the record has lost it.
func (a *Agent) bundleOnce(ctx context.Context, in recorded, seen uint64) (generations, error) {
	if !in.makeBundle || seen > 0 {
		return a.readBundle(ctx, in.cloud.Bundles, seen)
	}
	if err := a.checkClock(ctx); err != nil {
		return generations{}, err
	}
	b, err := certs.NewBundle(in.membership.ClusterUID(), time.Now())
	if err != nil {
		return generations{}, err
	}
	mine, err := b.Encode()
	if err != nil {
		return generations{}, err
	}
	// Another's, if there is one already: what counts is what the record holds.
	var plaintext []byte
	err = acts.StepBundle.Take(a.cfg.AtStep, func() (err error) {
		plaintext, _, err = in.cloud.Bundles.Create(ctx, 1, mine)
		return err
	})
	if err != nil {
		return generations{}, err
	}
	if b, err = certs.DecodeBundle(plaintext); err != nil {
		return generations{}, err
	}
	return generations{bundle: b}, b.Check(time.Now())
}
