// Package certificates sees that this replica's disk has the certificates that it needs, and that they are renewed.
//
//	Certify ─── the boot: what the disk lacks is issued           the disk; the bundle, if need be
//	   │            the bundle is made or read                    the record, KMS
//	Renew ───── whenever something is due, until the replica stops
//
// Guarantees: one bundle is made for a cluster, by a clock that is right, and only by the holder of the first epoch's
// claim whose disk has seen none. A later generation is taken only if it continues the one before. A member that has
// its own certificates is not kept from voting by what else is lacking: that is tried again. What is whole needs no
// record.
//
// What has to be issued, and what a key may be used for, is package certs' business.
package certificates

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// Bundles is the store of the sealed bundle. Create is write-once: it returns what the record holds afterwards.
// Generations lists what is there, oldest first; nothing is no error. Read opens one of them.
type Bundles interface {
	Create(ctx context.Context, generation uint64, plaintext []byte) (got []byte, won bool, err error)
	Generations(ctx context.Context) ([]uint64, error)
	Read(ctx context.Context, generation uint64) ([]byte, error)
}

// Clock is one that does not depend on this VM's. Time tries again until ctx is done; an error is final.
type Clock interface {
	Time(ctx context.Context) (time.Time, error)
}

// Config is what does not depend on whose certificates they are.
type Config struct {
	Log   *slog.Logger
	Waits *waits.Phased
	Clock Clock
	// Owners are whose the files are; what is not named stays the agent's.
	Owners func(f certs.Files) map[string]certs.Owner
	// Renewed is called after a renewal that had a bundle. It returns at once.
	Renewed func()
	// AtStep is called at acts.StepBundle; nil in production.
	AtStep func(s acts.Step, m acts.Moment)
}

// Replica is whose certificates they are, and where its bundle is.
type Replica struct {
	Self    replica.Identity
	Cluster *replica.Cluster
	Files   certs.Files
	Bundles Bundles
	// ClusterUID is the record's; it is asked each time.
	ClusterUID func() string
}

// Certificates are this replica's. Open comes first; Certify and Renew are called one after the other, the rest at any
// time after them.
type Certificates struct {
	cfg Config
	me  Replica

	mu       sync.Mutex
	expiries []certs.Expiry // never written into again
}

// New knows of no replica yet.
func New(cfg Config) *Certificates { return &Certificates{cfg: cfg} }

// Open says whose they are. Nothing is read or written by that.
func (c *Certificates) Open(me Replica) { c.me = me }

// Expiries are what expires, as the last check has found it.
func (c *Certificates) Expiries() []certs.Expiry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expiries
}

// Administrator is an administrator's certificate, for a minute and in memory. issued is of the boot. Where that went
// on without the bundle it is read.
func (c *Certificates) Administrator(ctx context.Context, issued Issued) (tls.Certificate, error) {
	bundle := issued.Bundle
	if bundle == nil {
		found, err := c.bundleOnce(ctx, false, issued.Report.Generation)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("read the bundle: %w", err)
		}
		bundle = found.bundle
	}
	return certs.BootstrapClient(bundle, time.Now())
}

const (
	// bundlePause is the time between two tries to read a bundle without which the boot cannot go on.
	bundlePause = time.Second
	// optionalBundle is how long a boot waits for a bundle that only the controller-manager's signer needs.
	optionalBundle = 5 * time.Second
	// clockTolerance is half of how far a replica's clock may be behind the one by which the bundle was made: the other
	// half is left for those that are behind.
	clockTolerance = 12 * time.Hour
)

const (
	// renewPeriod is the longest time between two checks of the certificates: the clock may have been set, or have gone
	// on while the VM stood.
	renewPeriod = 10 * time.Minute
	// A renewal that failed is tried again after firstRenewRetry, and later and later, up to renewRetry.
	firstRenewRetry, renewRetry = time.Second, 30 * time.Second
)
