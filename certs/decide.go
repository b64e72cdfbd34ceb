package certs

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Action is what has to happen to a leaf.
type Action string

// The actions. Keep and Renew find a leaf that works; Replace finds one that does not.
const (
	Keep    Action = "keep"
	Renew   Action = "renew"
	Replace Action = "replace"
)

// Found is what stands on disk in a leaf's place. Exactly one of Err and Cert is set.
type Found struct {
	// Err is fs.ErrNotExist where there is nothing, and otherwise why the file is not a leaf.
	Err  error
	Cert *x509.Certificate
	// Mode is the file's permissions.
	Mode fs.FileMode
}

// Want is what should stand there.
type Want struct {
	Spec Spec
	// CA issues today. Former CAs are still trusted, so that a leaf of theirs works while it is renewed.
	CA     *x509.Certificate
	Former []*x509.Certificate
	// InstanceID spreads the renewals of the replicas over time.
	InstanceID string
}

// Decision says what to do and why. Aside: keep the bytes that are there under another name, for whoever wants to know
// how they came to be.
type Decision struct {
	Action Action
	Reason string
	Aside  bool
}

// Decide compares a leaf on disk with what is wanted. It is the only place where a renewal is decided on; it reads no
// clock and no file. The first reason that applies is given.
func Decide(now time.Time, found Found, want Want) Decision {
	c := found.Cert
	switch {
	case errors.Is(found.Err, fs.ErrNotExist):
		return Decision{Action: Replace, Reason: "missing"}
	case found.Err != nil:
		return Decision{Action: Replace, Reason: found.Err.Error(), Aside: true}
	case now.Before(c.NotBefore):
		return Decision{Action: Replace, Reason: "not valid before " + stamp(c.NotBefore)}
	case !now.Before(c.NotAfter):
		return Decision{Action: Replace, Reason: "expired at " + stamp(c.NotAfter)}
	}
	if d := want.Spec.differsInKind(c); d != "" {
		return Decision{Action: Replace, Reason: d}
	}
	if err := verify(c, now, want.CA); err != nil {
		if verify(c, now, want.Former...) == nil {
			return Decision{Action: Renew, Reason: "issued by a former CA"}
		}
		return Decision{Action: Replace, Reason: "not issued by the " + string(want.Spec.Authority) + " CA: " +
			err.Error()}
	}
	if reason := renewal(now, found, want); reason != "" {
		return Decision{Action: Renew, Reason: reason}
	}
	return Decision{Action: Keep}
}

// renewal says why a leaf of today's CA that works should be issued again; empty: it should not.
func renewal(now time.Time, found Found, want Want) string {
	c := found.Cert
	if found.Mode.Perm()&0o077 != 0 {
		return fmt.Sprintf("mode %#o: others could read the key", found.Mode.Perm())
	}
	if d := want.Spec.differsInNames(c); d != "" {
		return d
	}
	due := RenewAt(c, want.InstanceID)
	if now.Before(due) {
		return ""
	}
	if !endOf(want.Spec, want.CA, now).After(c.NotAfter) {
		return "" // the CA ends first: issuing again would gain nothing, and be due again at once
	}
	return "renewal was due at " + stamp(due)
}

// RenewAt is when a leaf is due: at two thirds of its life, or earlier by up to a twelfth of it, as the instance id has
// it. So replicas that were made at one moment do not all call for the bundle at one moment.
func RenewAt(c *x509.Certificate, instanceID string) time.Time {
	life := c.NotAfter.Sub(c.NotBefore)
	sum := sha256.Sum256([]byte(instanceID))
	share := float64(binary.BigEndian.Uint32(sum[:4])) / (1 << 32)
	return c.NotBefore.Add(life * 2 / 3).Add(-time.Duration(share * float64(life/12)))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
