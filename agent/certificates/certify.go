package certificates

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/acts"
)

// Issued is what the boot found or issued. The bundle is nil where it was not needed, or could not be read and was not
// needed for what the disk lacks. The report is of the last check of the certificates.
type Issued struct {
	Bundle *certs.Bundle
	Report certs.Report
	// Lacking says that the member has its certificates, and something else has not: that is tried again alongside the
	// rest of the boot.
	Lacking bool
}

// notRenewed is the wait for certificates, or what goes with them, that could not be issued or written.
const (
	notRenewed     = "certificates-not-renewed"
	notRenewedNext = "It is tried again, at most half a minute later; what runs goes on until its " +
		"certificates expire."
)

// Certify makes sure that the disk has every leaf of this replica. The holder of the first epoch's claim makes the
// bundle; all read it back. Where the member has its own, the boot goes on whatever else is lacking: a kubeconfig that
// cannot be written must not keep a voter from voting.
func (c *Certificates) Certify(ctx context.Context, makeBundle bool) (out Issued, err error) {
	out.Report, err = c.ensure(generations{})
	if wantsBundle(out.Report, err) {
		needed := err != nil && c.Member() != nil
		found, bundleErr := c.bundle(ctx, makeBundle, out.Report.Generation, needed)
		if bundleErr != nil {
			return out, bundleErr
		}
		if found.bundle != nil {
			out.Report, err = c.ensure(found)
			c.logChanges(out.Report)
		}
		if err == nil {
			out.Bundle = found.bundle
		}
	}
	if err == nil {
		return out, nil
	}
	if c.Member() != nil {
		return out, err
	}
	out.Lacking = true
	c.cfg.Waits.HoldFor(notRenewed, err, notRenewedNext)
	return out, nil
}

// ensure is certs.Ensure, whose list of what expires is kept for the status. An error may leave the list short: what
// was found before stays then.
func (c *Certificates) ensure(g generations) (certs.Report, error) {
	report, err := certs.Ensure(c.request(g))
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(report.Expiries) >= len(c.expiries) {
		c.expiries = report.Expiries
	}
	return report, err
}

// wantsBundle reports whether ensure, which had no bundle, would have done more with one.
func wantsBundle(report certs.Report, err error) bool {
	return errors.Is(err, certs.ErrBundleNeeded) || err == nil && len(report.Pending) > 0
}

// Member says why etcd cannot run with what is on the disk: not with the leaves of another replica whose disk
// this was, nor of another cluster.
func (c *Certificates) Member() error {
	return certs.Usable(c.request(generations{}), certs.EtcdServer, certs.EtcdPeerLeaf, certs.AgentEtcd)
}

// logChanges says what was written, one line a reason: a first boot writes thirty files for one.
func (c *Certificates) logChanges(report certs.Report) {
	names := map[string][]string{}
	var reasons []string
	for _, change := range report.Changes {
		if names[change.Reason] == nil {
			reasons = append(reasons, change.Reason)
		}
		names[change.Reason] = append(names[change.Reason], change.Name)
	}
	for _, reason := range reasons {
		c.cfg.Log.Info("certificates written", "reason", reason, "names", strings.Join(names[reason], " "))
	}
}

// generations is the bundle that this replica takes, and those before it, from the one on that its disk has seen. Both
// are empty where none is at hand.
type generations struct {
	bundle *certs.Bundle
	former []*certs.Bundle
}

func (c *Certificates) request(g generations) certs.Request {
	return certs.Request{
		Files: c.me.Files, Bundle: g.bundle, Former: g.former, ClusterUID: c.me.ClusterUID(),
		Identity: c.me.Self, Cluster: c.me.Cluster, Now: time.Now(), Owners: c.cfg.Owners(c.me.Files),
	}
}

// bundle makes or reads the bundle. The disk has seen a generation of it, or none: 0. Where the bundle is not needed to
// go on, this gives up soon and without an error.
func (c *Certificates) bundle(ctx context.Context, makeBundle bool, seen uint64, needed bool) (generations, error) {
	if !needed {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, optionalBundle)
		defer cancel()
	}
	for {
		b, err := c.bundleOnce(ctx, makeBundle, seen)
		if err == nil {
			c.cfg.Waits.Release(bundleUnreadable)
			c.cfg.Waits.Release(clockWrong)
			return b, nil
		}
		if needed {
			c.holdForBundle(err)
		}
		select {
		case <-ctx.Done():
			if !needed {
				c.cfg.Log.Warn("go on without the bundle", "err", err.Error())
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
		"the agent's next start, within half a minute."
)

// holdForBundle says why a boot waits that cannot go on without the bundle: one of two reasons.
func (c *Certificates) holdForBundle(err error) {
	if errors.Is(err, errClock) {
		c.cfg.Waits.Release(bundleUnreadable)
		c.cfg.Waits.HoldFor(clockWrong, err, clockNext)
		return
	}
	c.cfg.Waits.Release(clockWrong)
	c.cfg.Waits.HoldFor(bundleUnreadable, err, bundleRetry)
}

// bundleOnce makes the bundle where that is this replica's to do, and else reads it. A disk that has seen a bundle
// never leads to another one, also where the record has lost it.
func (c *Certificates) bundleOnce(ctx context.Context, makeBundle bool, seen uint64) (generations, error) {
	if !makeBundle || seen > 0 {
		return c.readBundle(ctx, seen)
	}
	if err := c.checkClock(ctx); err != nil {
		return generations{}, err
	}
	b, err := certs.NewBundle(c.me.ClusterUID(), time.Now())
	if err != nil {
		return generations{}, err
	}
	mine, err := b.Encode()
	if err != nil {
		return generations{}, err
	}
	// Another's, if there is one already: what counts is what the record holds.
	var plaintext []byte
	err = acts.StepBundle.Take(c.cfg.AtStep, func() (err error) {
		plaintext, _, err = c.me.Bundles.Create(ctx, 1, mine)
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
