package certs

import (
	"crypto"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// Fingerprint names one CA of a bundle by what may be shown of it.
type Fingerprint struct {
	Authority Authority `json:"authority"`
	// Pin is the SHA-256 of its public key (SPKI) in hexadecimal, as binding.json on every replica has it.
	Pin      string    `json:"pin"`
	NotAfter time.Time `json:"notAfter"`
}

// Fingerprints lists the CAs that issue, in the order of Authorities.
func (b *Bundle) Fingerprints() ([]Fingerprint, error) {
	var out []Fingerprint
	for _, name := range Authorities() {
		c := b.authorities[name].cert
		p, err := pin(c.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("%s CA: %w", name, err)
		}
		out = append(out, Fingerprint{name, p, c.NotAfter})
	}
	return out, nil
}

// Prove checks a bundle that comes from outside of the record by using it: every leaf of the table is issued for an imaginary replica of the
// cluster, and must verify as its users will verify it. Nothing of it is kept.
func (b *Bundle) Prove(c *replica.Cluster, now time.Time) error {
	specs, err := Leaves(replica.Identity{Place: replica.Place{Zone: "zone", Name: "proof"}, InstanceID: "1",
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, c)
	if err != nil {
		return fmt.Errorf("prove %s: %w", b, err)
	}
	i, err := newIssuer(b, specs, now)
	if err != nil {
		return err
	}
	for _, s := range specs {
		if _, err := i.issue(s); err != nil {
			return fmt.Errorf("prove %s: %w", b, err)
		}
	}
	return nil
}

// Continues checks that a bundle can take the place of a former generation in a running cluster, whose replicas take it up one after the other: each side
// trusts what the other issues, its tokens verify, and what it encrypted can be read. Without that half of the cluster would refuse the other. So
// a new CA comes in two generations: one that trusts it, and issues with the CA of before, and one that issues with it.
func (b *Bundle) Continues(former *Bundle) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%s does not continue %s: %s", b, former, fmt.Sprintf(format, args...))
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
			return refuse("it issues with a new %s CA, which the masters do not trust yet: first import a generation that lists it as former, and start every master again", name)
		}
	}
	signs := former.serviceAccount[0].Public()
	if !slices.ContainsFunc(b.serviceAccount, func(k crypto.Signer) bool { return samePublicKey(k.Public(), signs) }) {
		return refuse("it lacks the service-account key that signs now")
	}
	for _, k := range former.encryption {
		if !slices.ContainsFunc(b.encryption, func(n encryptionKey) bool { return n.name == k.name && slices.Equal(n.secret, k.secret) }) {
			return refuse("it lacks encryption key %s", k.name)
		}
	}
	return nil
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
