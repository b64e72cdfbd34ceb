package certs

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// extended spells each usage in the standard library's words.
var extended = map[Usage][]x509.ExtKeyUsage{
	UsageServer: {x509.ExtKeyUsageServerAuth},
	UsageClient: {x509.ExtKeyUsageClientAuth},
	UsagePeer:   {x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
}

// differs says in what a certificate is not what the spec wants; empty: in nothing.
func (s Spec) differs(c *x509.Certificate) string {
	if d := s.differsInKind(c); d != "" {
		return d
	}
	return s.differsInNames(c)
}

// differsInKind compares who the certificate says its holder is and what it may do. The subject is compared byte by
// byte, so that no further attribute can hide in it.
func (s Spec) differsInKind(c *x509.Certificate) string {
	name := pkix.Name{CommonName: s.CommonName}
	if s.Organization != "" {
		name.Organization = []string{s.Organization}
	}
	want, err := asn1.Marshal(name.ToRDNSequence())
	if err != nil || !bytes.Equal(want, c.RawSubject) {
		return fmt.Sprintf("subject %q, not %q", c.Subject, name)
	}
	if c.IsCA {
		return "it is a CA"
	}
	if !slices.Equal(c.ExtKeyUsage, extended[s.Usage]) || len(c.UnknownExtKeyUsage) > 0 ||
		c.KeyUsage != x509.KeyUsageDigitalSignature {
		return fmt.Sprintf("usage %v, not %s", c.ExtKeyUsage, s.Usage)
	}
	return ""
}

// differsInNames compares the alternative names as sets: one too many vouches for an address that may be another's by
// now.
func (s Spec) differsInNames(c *x509.Certificate) string {
	if len(c.EmailAddresses)+len(c.URIs) > 0 {
		return "it has e-mail or URI names"
	}
	var addresses []netip.Addr
	for _, ip := range c.IPAddresses {
		addresses = append(addresses, canonical(ip))
	}
	for _, w := range s.Names {
		if !slices.Contains(c.DNSNames, w) {
			return "it lacks the name " + w
		}
	}
	for _, w := range s.Addresses {
		if !slices.Contains(addresses, w) {
			return "it lacks the address " + w.String()
		}
	}
	for _, f := range c.DNSNames {
		if !slices.Contains(s.Names, f) {
			return "it has the name " + f + " too many"
		}
	}
	for _, f := range addresses {
		if !slices.Contains(s.Addresses, f) {
			return "it has the address " + f.String() + " too many"
		}
	}
	return ""
}

func canonical(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// verify checks the chain as etcd and the apiserver will: signature, times, path length, name constraints, usages.
func verify(c *x509.Certificate, now time.Time, roots ...*x509.Certificate) error {
	pool := x509.NewCertPool()
	for _, r := range roots {
		pool.AddCert(r)
	}
	if len(c.ExtKeyUsage) == 0 {
		return errors.New("it has no extended key usage")
	}
	for _, u := range c.ExtKeyUsage { // one by one: Verify is content with any of a list
		if _, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now,
			KeyUsages: []x509.ExtKeyUsage{u}}); err != nil {
			return err
		}
	}
	return nil
}
