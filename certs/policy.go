package certs

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// usages spells each usage in cfssl's words. Key encipherment is missing on purpose: an ECDSA key cannot.
var usages = map[Usage][]string{
	UsageServer: {"digital signature", "server auth"},
	UsageClient: {"digital signature", "client auth"},
	UsagePeer:   {"digital signature", "server auth", "client auth"},
}

// wellFormed is the policy: what has to hold for any leaf. It fails closed, because cfssl itself checks neither
// organizations, addresses, key strength nor whether a profile is known.
func (s Spec) wellFormed() error {
	if !slices.Contains(Authorities(), s.Authority) {
		return fmt.Errorf("authority: %q is unknown", s.Authority)
	}
	if _, ok := usages[s.Usage]; !ok {
		return fmt.Errorf("usage: %q is unknown", s.Usage)
	}
	if !printable.MatchString(s.CommonName) || !printable.MatchString(s.Organization) {
		return fmt.Errorf("subject %q, %q: letters, digits and . : - are allowed", s.CommonName, s.Organization)
	}
	if s.Lifetime < time.Second || s.Lifetime > LeafLifetime {
		return fmt.Errorf("lifetime: found %s", s.Lifetime)
	}
	if s.Usage == UsageClient {
		if s.CommonName == "" {
			return fmt.Errorf("common name: missing on a client's certificate")
		}
		if len(s.Names)+len(s.Addresses) > 0 {
			return fmt.Errorf("a client's certificate has no subject alternative names")
		}
		return nil
	}
	return s.wellFormedSANs()
}

func (s Spec) wellFormedSANs() error {
	if len(s.Addresses) == 0 {
		return fmt.Errorf("addresses: missing; etcd accepts a peer without any from everywhere")
	}
	for _, n := range s.Names {
		if err := checkName(n); err != nil {
			return err
		}
	}
	for _, a := range s.Addresses {
		if err := checkAddress(a, s.Usage); err != nil {
			return err
		}
	}
	return nil
}

// printable is the alphabet of every subject in the table, so that no two spellings look alike.
var printable = regexp.MustCompile(`^[A-Za-z0-9.:-]*$`)

// checkName accepts canonical host names only. cfssl turns whatever is no address into a DNS, e-mail or URI name:
// "10.0.0.1 " and "*.x" become DNS names, "*" and "/path" URIs. The rule is that of the cluster document: a name that
// validates there can be issued for.
func checkName(n string) error {
	if !replica.IsHostName(n) {
		return fmt.Errorf("name %q: allowed: %s", n, replica.HostNameRule)
	}
	return nil
}

// checkAddress accepts addresses that one machine or load balancer can have, in their one spelling.
func checkAddress(a netip.Addr, u Usage) error {
	switch {
	case !a.IsValid():
		return fmt.Errorf("address: empty")
	case a.Is4In6(), a.Zone() != "":
		return fmt.Errorf("address %s: an address without zone and IPv4 mapping is allowed", a)
	case a.IsUnspecified(), a.IsMulticast(), a.IsLinkLocalUnicast():
		return fmt.Errorf("address %s: stands for no one machine", a)
	case a.IsLoopback() && u == UsagePeer:
		return fmt.Errorf("address %s: loopback is every machine's", a)
	}
	return nil
}
