package certs

import (
	"bytes"
	"crypto"
	"fmt"
	"slices"
	"time"
)

// Continues checks that masters on a former generation can go on together with masters on this one, since replicas take
// it up one after the other. It holds in both directions: each side trusts the leaves that the other issues, verifies
// the tokens that it signs, and reads what it encrypts. So whatever is new comes in two generations: one that trusts it
// and works with what was there before, and one that works with it. What nobody works with any more may be left out,
// but an encryption key: nothing here knows what etcd still holds under it.
func (b *Bundle) Continues(former *Bundle) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%s does not continue %s: %w", b, former, fmt.Errorf(format, args...))
	}
	if b.ClusterUID != former.ClusterUID || b.Generation <= former.Generation {
		return refuse("want the same cluster and a higher generation")
	}
	for _, name := range Authorities() {
		was, is := former.authorities[name], b.authorities[name]
		if !slices.ContainsFunc(is.trust(), was.cert.Equal) {
			return refuse("it does not trust the %s CA that issues now", name)
		}
		if !slices.ContainsFunc(was.trust(), is.cert.Equal) {
			return refuse("it issues with a new %s CA, which the masters do not trust yet: %s", name, firstListed)
		}
	}
	if !verifies(b, former.serviceAccount[0]) {
		return refuse("it lacks the service-account key that signs now")
	}
	if !verifies(former, b.serviceAccount[0]) {
		return refuse("it signs with a new service-account key, by which the masters do not verify yet: %s",
			firstListed)
	}
	for _, k := range former.encryption {
		if !decrypts(b, k) {
			return refuse("it lacks encryption key %s", k.name)
		}
	}
	if k := b.encryption[0]; !decrypts(former, k) {
		return refuse("it encrypts with the new key %s, with which the masters do not decrypt yet: %s", k.name,
			firstListed)
	}
	if err := b.CheckNewCAs(former, b.Created); err != nil {
		return refuse("%w", err)
	}
	return nil
}

// firstListed is how something new comes in.
const firstListed = "first import a generation that lists it behind the present one, and start every master again"

// verifies says whether masters on a bundle accept the tokens that a key signs.
func verifies(b *Bundle, key crypto.Signer) bool {
	return slices.ContainsFunc(b.serviceAccount, func(k crypto.Signer) bool {
		return samePublicKey(k.Public(),
			key.Public())
	})
}

// decrypts says whether masters on a bundle read what a key encrypts. They find it by the name that stands before the
// value.
func decrypts(b *Bundle, key encryptionKey) bool {
	return slices.ContainsFunc(b.encryption, func(k encryptionKey) bool {
		return k.name == key.name && bytes.Equal(k.secret, key.secret)
	})
}

// CheckNewCAs checks that each CA that begins to issue with a bundle outlives the leaves that it issues at a time. Else
// all of them end with it at one moment, and it must be rotated before the first renewal is due. A CA that issues in
// the former generation already may be about to end: its rotation begins with a generation in which it still issues.
// Without a former generation (nil) every CA begins.
func (b *Bundle) CheckNewCAs(former *Bundle, at time.Time) error {
	for _, name := range Authorities() {
		c := b.authorities[name].cert
		if former != nil && former.authorities[name].cert.Equal(c) {
			continue
		}
		if c.NotAfter.Before(at.Add(LeafLifetime)) {
			return fmt.Errorf("the %s CA ends at %s: one that begins to issue has to outlive its leaves, which live "+
				"%d days",
				name, stamp(c.NotAfter), LeafLifetime/(24*time.Hour))
		}
	}
	return nil
}

// LeftOut names each CA and each service-account key that a former generation trusts and this one does not, by the
// SHA-256 of its key. What it issued or signed is refused from then on, wherever it still is in use.
func (b *Bundle) LeftOut(former *Bundle) (out []string, err error) {
	note := func(kind string, pub crypto.PublicKey) error {
		p, err := pin(pub)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		out = append(out, kind+" "+p)
		return nil
	}
	for _, name := range Authorities() {
		for _, c := range former.authorities[name].trust() {
			if slices.ContainsFunc(b.authorities[name].trust(), c.Equal) {
				continue
			}
			if err := note(string(name)+" CA", c.PublicKey); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range former.serviceAccount {
		if verifies(b, k) {
			continue
		}
		if err := note("service-account key", k.Public()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Continued is how many of these generations, oldest first, continue one another from the first on: a replica that has
// the first may take the last of them. The error says why not all do; it is ErrNotContinued.
func Continued(generations []*Bundle) (n int, err error) {
	for n = 1; n < len(generations); n++ {
		if err := generations[n].Continues(generations[n-1]); err != nil {
			return n, fmt.Errorf("%w: %w", ErrNotContinued, err)
		}
	}
	return len(generations), nil
}
