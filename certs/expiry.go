package certs

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Expiry is when a certificate of the replica ends.
type Expiry struct {
	// Name is a leaf's, or an authority's with "-ca" behind it.
	Name     string    `json:"name"`
	NotAfter time.Time `json:"notAfter"`
}

// Expiries lists the CAs and the leaves on disk with the end of each, CAs first, then in the order of the table. Of a
// trust bundle it is the issuing CA's. What cannot be read is in the error, and the rest is listed nevertheless.
func Expiries(f Files) ([]Expiry, error) {
	var out []Expiry
	var errs []error
	for _, a := range Authorities() {
		name := string(a) + "-ca"
		data, err := os.ReadFile(f.CA(a))
		if err != nil {
			errs = append(errs, fmt.Errorf("certificate %s: %w", name, err))
			continue
		}
		cs, err := parseCertificates(data)
		if err != nil {
			errs = append(errs, fmt.Errorf("certificate %s: %w", name, err))
			continue
		}
		out = append(out, Expiry{Name: name, NotAfter: cs[0].NotAfter})
	}
	for _, r := range table {
		found, err := find(readRegular, f.Leaf(r.leaf))
		if err = errors.Join(err, found.Err); err != nil {
			errs = append(errs, fmt.Errorf("certificate %s: %w", r.leaf, err))
			continue
		}
		out = append(out, Expiry{Name: string(r.leaf), NotAfter: found.Cert.NotAfter})
	}
	return out, errors.Join(errs...)
}
