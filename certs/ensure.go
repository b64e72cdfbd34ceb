package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
)

// Request says for whom Ensure works and with what.
type Request struct {
	Files Files
	// Bundle is nil where the record or KMS cannot be reached: then Ensure only checks, and writes nothing but
	// kubeconfigs.
	Bundle *Bundle
	// Former are the generations before Bundle, oldest first, from the one on that the folder follows
	// (Report.Generation), or all where it does not say (0). They are needed where the folder follows an older
	// generation than Bundle's: one that does not continue it is not taken.
	Former []*Bundle
	// ClusterUID is the inception's, where the caller knows it: a folder of another cluster is refused also without a
	// bundle.
	ClusterUID string
	Identity   replica.Identity
	// Cluster is valid and has its defaults.
	Cluster *replica.Cluster
	Now     time.Time
	// Owners say whose a file is, by its path, where that is another user than the caller. The folders let others pass
	// then, and show them no names.
	Owners map[string]Owner
}

// Owner is a user who reads a file.
type Owner struct {
	durable.Owner
	// GroupReads: so does whoever is in the group.
	GroupReads bool
}

// write is durable.WriteFiles, for each file's owner.
func (r Request) write(files ...durable.File) (n int, err error) {
	for i, f := range files {
		if owner, ok := r.Owners[f.Path]; ok {
			files[i].Owner = &owner.Owner
		}
	}
	return durable.WriteFiles(files)
}

// Change is one file and why it was written, or why it has to be.
type Change struct {
	Name   string
	Reason string
}

// Expiry is when a certificate of the replica ends.
type Expiry struct {
	// Name is a leaf's, or an authority's with "-ca" behind it.
	Name     string    `json:"name"`
	NotAfter time.Time `json:"notAfter"`
}

// Report is what Ensure did and found. Of the names in Changes those of trust bundles ("etcd-peer-ca"), of
// service-account keys, of the encryption config and of the signer concern processes that read them only at their
// start; all else is taken up by itself.
type Report struct {
	// Generation is that of the bundle which the folder now follows; 0: it does not say.
	Generation uint64
	// Changes are in the order in which they were made.
	Changes []Change
	// Pending is what waits for the bundle, though the replica can serve without it for now: renewals that are due,
	// files with wrong permissions, and the signer of the controller-manager, which is gone after a boot.
	Pending []Change
	// Expiries are of all CAs and leaves, CAs first, then in the order of the table. Of a trust bundle it is the
	// issuing CA's. After an error some may be missing.
	Expiries []Expiry
	// NextRenewal is when the first leaf is due. Ensure has to be called then, and whenever an address, the
	// configuration or the bundle has changed.
	NextRenewal time.Time
}

// Ensure makes the replica's files what they have to be: it keeps each that is right, issues or writes each that is
// not, and says what it did. It may be called again at any time, also after a crash or an error, but by one caller at a
// time.
//
// The error is ErrOtherCluster, ErrRollback, ErrOtherAuthorities, ErrNotContinued or ErrAuthorityExpired for a bundle
// that must not be used, ErrBundleNeeded where something unusable cannot be replaced without a bundle, and else what
// could not be read or written, with the system's cause in it (syscall.ENOSPC). The report is valid with an error too.
func Ensure(r Request) (Report, error) {
	return ensure(r, disk{read: readRegular, write: r.write, rename: durable.Rename, sync: durable.SyncDir})
}

func ensure(r Request, d disk) (Report, error) {
	k := &keeper{Request: r, disk: d}
	for _, step := range []func() error{k.plan, k.bind, k.folders, k.writeBinding, k.shareds, k.leaves, k.kubeconfigs,
		k.owners} {
		if err := step(); err != nil {
			return k.report, fmt.Errorf("ensure certificates: %w", err)
		}
	}
	if len(k.unusable) > 0 {
		return k.report, fmt.Errorf("ensure certificates: %w: %w", errors.Join(k.unusable...), ErrBundleNeeded)
	}
	return k.report, nil
}

// keeper is one run of Ensure; its methods are the steps, in order.
type keeper struct {
	Request
	disk   disk
	report Report

	specs    []Spec
	issuer   *issuer // nil without a bundle
	bound    binding // what the disk says; zero where it says nothing
	unusable []error
}

// plan works out what there has to be, and checks that the bundle may be used, before anything is touched.
func (k *keeper) plan() (err error) {
	if k.specs, err = Leaves(k.Identity, k.Cluster); err != nil {
		return err
	}
	if k.Bundle == nil {
		return nil
	}
	if k.ClusterUID != "" && k.Bundle.ClusterUID != k.ClusterUID {
		return fmt.Errorf("bundle of cluster %s, wanted %s: %w", k.Bundle.ClusterUID, k.ClusterUID, ErrOtherCluster)
	}
	k.issuer, err = newIssuer(k.Bundle, k.Now)
	return err
}

// leaves decides on each leaf, and acts. None depends on another, so what is new is written at once: on a new disk that
// is all of them, and each by itself would wait for the disk twice.
func (k *keeper) leaves() error {
	var made []outcome
	var files []durable.File
	var unread error // what comes before it is written all the same
	for _, s := range k.specs {
		decision, found, err := k.judge(s)
		if err != nil {
			unread = err
			break
		}
		o, err := k.act(decision, s, found)
		if err != nil {
			return err
		}
		if made = append(made, o); o.data != nil {
			files = append(files, durable.File{Path: k.Files.Leaf(s.Leaf), Data: o.data, Perm: secretMode})
		}
	}
	n, err := k.disk.write(files...)
	for _, o := range made {
		if o.data != nil {
			if n--; n < 0 {
				break
			}
			k.report.Changes = append(k.report.Changes, Change{string(o.leaf), o.reason})
		}
		if o.cert != nil {
			k.expires(string(o.leaf), o.cert.NotAfter)
			k.due(RenewAt(o.cert, k.Identity.InstanceID))
		}
	}
	if err != nil {
		err = fmt.Errorf("leaves: %w", err)
	}
	return errors.Join(unread, err)
}

// outcome is what was done about a leaf.
type outcome struct {
	leaf Leaf
	// cert is the one that is there afterwards; nil: none that works. data is the file that is to be written; nil: none
	// is. reason is why.
	cert   *x509.Certificate
	data   []byte
	reason string
}

// judge decides on one leaf, and returns the certificate that stands there.
func (k *keeper) judge(s Spec) (d Decision, found *x509.Certificate, err error) {
	want := Want{Spec: s, InstanceID: k.Identity.InstanceID}
	if want.CA, want.Former, err = k.trust(s.Authority); err != nil {
		return d, nil, err
	}
	if want.CA == nil {
		return Decision{Action: Replace, Reason: "its CA is not there"}, nil, nil
	}
	f, err := find(k.disk.read, k.Files.Leaf(s.Leaf))
	if err != nil {
		return d, nil, fmt.Errorf("leaf %s: %w", s.Leaf, err)
	}
	return Decide(k.Now, f, want), f.Cert, nil
}

// act carries a decision out, but for the writing.
func (k *keeper) act(d Decision, s Spec, found *x509.Certificate) (outcome, error) {
	stays := outcome{leaf: s.Leaf, cert: found}
	switch {
	case d.Action == Keep:
		return stays, nil
	case k.issuer == nil && d.Action == Renew:
		k.pending(string(s.Leaf), d.Reason)
		return stays, nil
	case k.issuer == nil:
		k.need(string(s.Leaf), d.Reason)
		return outcome{leaf: s.Leaf}, nil
	}
	p, err := k.issuer.issue(s)
	if err != nil {
		return outcome{}, err
	}
	data, err := p.encode()
	if err != nil {
		return outcome{}, fmt.Errorf("issue %s: %w", s.Leaf, err)
	}
	if d.Aside {
		if err := k.disk.aside(k.Files.Leaf(s.Leaf)); err != nil {
			return outcome{}, fmt.Errorf("leaf %s: %w", s.Leaf, err)
		}
	}
	return outcome{s.Leaf, p.cert, data, d.Reason}, nil
}

// trust is the authority's issuing CA and its former ones: the bundle's, or without a bundle those on disk. The CA is
// nil where the disk has none that can be parsed.
func (k *keeper) trust(a Authority) (ca *x509.Certificate, former []*x509.Certificate, err error) {
	if k.Bundle != nil {
		a := k.Bundle.authorities[a]
		return a.cert, a.former, nil
	}
	data, _, err := k.disk.read(k.Files.CA(a))
	if unread(err) {
		return nil, nil, fmt.Errorf("%s CA: %w", a, err)
	}
	if err != nil {
		return nil, nil, nil
	}
	cs, err := parseCertificates(data)
	if err != nil {
		return nil, nil, nil
	}
	return cs[0], cs[1:], nil
}

// need notes that the replica cannot serve before the bundle is at hand.
func (k *keeper) need(name, reason string) {
	k.unusable = append(k.unusable, fmt.Errorf("%s: %s", name, reason))
}

// pending notes what is to be written once the bundle is at hand, while the replica serves without it.
func (k *keeper) pending(name, reason string) {
	k.report.Pending = append(k.report.Pending, Change{name, reason})
}

func (k *keeper) expires(name string, notAfter time.Time) {
	k.report.Expiries = append(k.report.Expiries, Expiry{Name: name, NotAfter: notAfter})
}

// due notes when a leaf is to be renewed.
func (k *keeper) due(at time.Time) {
	if next := k.report.NextRenewal; next.IsZero() || at.Before(next) {
		k.report.NextRenewal = at
	}
}
