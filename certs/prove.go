package certs

import (
	"fmt"
	"net/netip"
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

// Prove checks a bundle that comes from outside of the record by using it: every leaf of the table is issued for an
// imaginary replica of the cluster, and must verify as its users will verify it. Nothing of it is kept.
func (b *Bundle) Prove(c *replica.Cluster, now time.Time) error {
	specs, err := Leaves(replica.Identity{Place: replica.Place{Zone: "zone", Name: "proof"}, InstanceID: "1",
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, c)
	if err != nil {
		return fmt.Errorf("prove %s: %w", b, err)
	}
	i, err := newIssuer(b, now)
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
