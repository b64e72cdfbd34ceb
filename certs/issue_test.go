package certs

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudflare/cfssl/signer"
)

func TestEachLeafIsIssuedAsTheTableSays(t *testing.T) {
	b := testBundle(t)
	serials := map[string]bool{}
	for _, r := range table {
		t.Run(string(r.leaf), func(t *testing.T) {
			s, p := specOf(t, r.leaf), mustIssue(t, b, r.leaf, t0)
			c := p.cert
			if c.Subject.CommonName != s.CommonName || strings.Join(c.Subject.Organization, ",") != s.Organization ||
				len(c.Subject.Names) != len(strings.Fields(s.CommonName+" "+s.Organization)) {
				t.Errorf("subject %s", c.Subject)
			}
			if !slices.Equal(c.DNSNames, s.Names) || !slices.Equal(addressesOf(c), s.Addresses) {
				t.Errorf("SANs %v %v, want %v %v", c.DNSNames, c.IPAddresses, s.Names, s.Addresses)
			}
			if len(c.EmailAddresses)+len(c.URIs)+len(c.UnhandledCriticalExtensions)+len(c.UnknownExtKeyUsage) != 0 {
				t.Error("it holds more than it should")
			}
			if !slices.Equal(c.ExtKeyUsage, extended[s.Usage]) || c.KeyUsage != x509.KeyUsageDigitalSignature ||
				c.IsCA || !c.BasicConstraintsValid {
				t.Errorf("usage %v, key usage %v, CA %v", c.ExtKeyUsage, c.KeyUsage, c.IsCA)
			}
			if !c.NotBefore.Equal(t0.Add(-24*time.Hour)) || !c.NotAfter.Equal(t0.Add(90*24*time.Hour)) {
				t.Errorf("valid %s to %s", c.NotBefore, c.NotAfter)
			}
			if !samePublicKey(c.PublicKey, p.key.Public()) || c.SignatureAlgorithm != x509.ECDSAWithSHA256 {
				t.Error("key or signature")
			}
			for _, a := range Authorities() {
				if ok := verify(c, t0, b.authorities[a].cert) == nil; ok != (a == s.Authority) {
					t.Errorf("verifies under the %s CA: %v", a, ok)
				}
			}
			if serials[c.SerialNumber.String()] || c.SerialNumber.BitLen() < 64 {
				t.Errorf("serial %d", c.SerialNumber)
			}
			serials[c.SerialNumber.String()] = true
		})
	}
}

func addressesOf(c *x509.Certificate) []netip.Addr {
	var out []netip.Addr
	for _, ip := range c.IPAddresses {
		out = append(out, canonical(ip))
	}
	return out
}

func TestAuthoritiesAreMadeAlike(t *testing.T) {
	b := testBundle(t)
	for _, name := range Authorities() {
		c := b.authorities[name].cert
		if want := string(name) + "-ca-g1"; c.Subject.CommonName != want || c.Subject.OrganizationalUnit[0] != "uid-1" {
			t.Errorf("subject %s, want %s", c.Subject, want)
		}
		if !c.MaxPathLenZero || c.MaxPathLen != 0 {
			t.Errorf("%s: path length %d: it could issue intermediate CAs", name, c.MaxPathLen)
		}
		if !c.NotAfter.Equal(t0.Add(3650 * 24 * time.Hour)) {
			t.Errorf("%s ends at %s", name, c.NotAfter)
		}
	}
}

func TestPolicyRefuses(t *testing.T) {
	addr := netip.MustParseAddr
	for _, tc := range []struct {
		name string
		leaf Leaf
		edit func(*Spec)
		want string
	}{
		{"an unknown profile", Agent, func(s *Spec) { s.Usage = "kubernetes" }, `usage: "kubernetes" is unknown`},
		{"no profile", Agent, func(s *Spec) { s.Usage = "" }, `usage: "" is unknown`},
		{"an unknown CA", APIServerEtcd, func(s *Spec) { s.Authority = "etcd" }, `authority: "etcd" is unknown`},
		{"no common name", Agent, func(s *Spec) { s.CommonName = "" }, "common name: missing"},
		{"a subject with a control character", Agent, func(s *Spec) { s.CommonName = "quorate:agent\x00" }, "subject"},
		{"a longer life", Agent, func(s *Spec) { s.Lifetime = LeafLifetime + 1 }, "lifetime"},
		{"no life", Agent, func(s *Spec) { s.Lifetime = 0 }, "lifetime"},
		{"names on a client", Agent, func(s *Spec) { s.Names = []string{"localhost"} },
			"has no subject alternative names"},
		{"a server without address", EtcdPeerLeaf, func(s *Spec) { s.Addresses = nil }, "addresses: missing"},
		{"loopback of a peer", EtcdPeerLeaf, func(s *Spec) { s.Addresses[0] = addr("127.0.0.1") }, "loopback"},
		{"an address with a zone", APIServer, func(s *Spec) { s.Addresses[0] = addr("fd20::2%eth0") }, "zone"},
		{"a mapped address", APIServer, func(s *Spec) { s.Addresses[0] = addr("::ffff:10.128.0.2") }, "mapping"},
		{"link-local: the metadata server", APIServer, func(s *Spec) { s.Addresses[0] = addr("169.254.169.254") },
			"no one machine"},
		{"the unspecified address", APIServer, func(s *Spec) { s.Addresses[0] = addr("0.0.0.0") }, "no one machine"},
		{"an empty address", APIServer, func(s *Spec) { s.Addresses[0] = netip.Addr{} }, "address: empty"},
		{"a wildcard", APIServer, func(s *Spec) { s.Names[0] = "*.example.net" }, `name "*.example.net"`},
		{"an empty name", APIServer, func(s *Spec) { s.Names[0] = "" }, `name ""`},
		{"a trailing dot", APIServer, func(s *Spec) { s.Names[0] = "master-1." }, `name "master-1."`},
		{"a trailing space", APIServer, func(s *Spec) { s.Names[0] = "master-1 " }, `name "master-1 "`},
		{"upper case", APIServer, func(s *Spec) { s.Names[0] = "Master-1" }, `name "Master-1"`},
		{"an address as name", APIServer, func(s *Spec) { s.Names[0] = "10.128.0.2" }, "the last not of digits alone"},
		{"an address with a leading zero as name", APIServer, func(s *Spec) { s.Names[0] = "010.0.0.1" },
			"the last not of digits alone"},
		{"a range as name", APIServer, func(s *Spec) { s.Names[0] = "10.0.0.1/24" }, `name "10.0.0.1/24"`},
		{"a URI", APIServer, func(s *Spec) { s.Names[0] = "/abs/path" }, `name "/abs/path"`},
		{"an e-mail address", APIServer, func(s *Spec) { s.Names[0] = "a@b.c" }, `name "a@b.c"`},
		{"a name too long", APIServer, func(s *Spec) { s.Names[0] = strings.Repeat("a.", 127) + "a" }, "name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := specOf(t, tc.leaf)
			tc.edit(&s)
			_, err := testIssuer(t, testBundle(t), t0).issue(s)
			if err == nil || !strings.Contains(err.Error(), "refused by policy") ||
				!strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestPolicyRefusesWhatTheConfigurationPutsIntoTheTable(t *testing.T) {
	for name, edit := range map[string]func(*Request){
		"wildcard":     func(r *Request) { r.Cluster.Endpoint.DNSNames = []string{"*.example.net"} },
		"zone":         func(r *Request) { r.Identity.Addresses[0] = netip.MustParseAddr("fe80::1%eth0") },
		"unspecified":  func(r *Request) { r.Cluster.Endpoint.InternalIP = "0.0.0.0" },
		"newline":      func(r *Request) { r.Identity.Name = "a\nb" },
		"domain empty": func(r *Request) { r.Cluster.Network.DNSDomain = "" },
	} {
		r := testRequest(t, testBundle(t))
		edit(&r)
		if _, err := ensure(r, fastDisk()); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Stat(r.Files.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: refused once something was written: %v", name, err)
		}
		r.Bundle = nil
		if _, err := ensure(r, fastDisk()); err == nil || errors.Is(err, ErrBundleNeeded) {
			t.Errorf("%s: without a bundle it is %v", name, err)
		}
	}
}

func TestSignRefusesBadKeys(t *testing.T) {
	b := testBundle(t)
	t.Setenv("GODEBUG", "rsa1024min=0")
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	for want, key := range map[string]crypto.Signer{
		"P-224":                 weakKey(t),
		"RSA with 1024 bits":    small,
		"the leaf's key is the": b.authorities[Kubernetes].key,
	} {
		if _, err := testIssuer(t, b, t0).sign(specOf(t, Agent), key); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestALeafNeverOutlivesItsCA(t *testing.T) {
	b := testBundle(t)
	end := b.authorities[Kubernetes].cert.NotAfter
	if got := mustIssue(t, b, Agent, end.Add(-time.Hour)).cert.NotAfter; !got.Equal(end) {
		t.Errorf("leaf ends %s, its CA %s", got, end)
	}
	if _, err := newIssuer(b, end); !errors.Is(err, ErrAuthorityExpired) {
		t.Errorf("expired CA: %v", err)
	}
	if _, err := newIssuer(b, t0.Add(-25*time.Hour)); err == nil {
		t.Error("a bundle from the future was used")
	}
}

// Of three replicas one makes the bundle; each issues its leaf, and believes the others', by a clock of its own.
func TestReplicasWhoseClocksAreHoursApartBelieveEachOther(t *testing.T) {
	clocks := map[string]time.Time{"right": t0, "an hour ahead": t0.Add(time.Hour),
		"an hour behind": t0.Add(-time.Hour), "in another time zone": t0.Add(-12 * time.Hour)}
	for maker, made := range clocks {
		b, err := NewBundle("uid-1", made)
		if err != nil {
			t.Fatal(err)
		}
		for issuer, issued := range clocks {
			leaf := mustIssue(t, b, EtcdPeerLeaf, issued).cert
			if ca := b.authorities[EtcdPeer].cert; leaf.NotBefore.Before(ca.NotBefore) {
				t.Errorf("the leaf begins at %s, its CA at %s", leaf.NotBefore, ca.NotBefore)
			}
			for reader, now := range clocks {
				if err := verify(leaf, now, b.authorities[EtcdPeer].cert); err != nil {
					t.Errorf("bundle made by a clock that is %s, leaf by one that is %s, read by one that is %s: %v",
						maker, issuer, reader, err)
				}
			}
		}
	}
}

// A signer that gives out something else than it was asked for. What it signs is read back and compared.
func TestASignerThatLiesIsFound(t *testing.T) {
	b := testBundle(t)
	other := mustIssue(t, testBundle(t), Agent, t0).key
	spiffe, err := url.Parse("spiffe://a/b")
	if err != nil {
		t.Fatal(err)
	}
	type certificate = x509.Certificate
	for name, c := range map[string]struct {
		leaf Leaf
		lie  func(c *certificate, ca *authority, key *crypto.Signer)
		want string
	}{
		"nothing else": {APIServer, func(*certificate, *authority, *crypto.Signer) {}, ""},
		"another name": {Agent, func(c *certificate, _ *authority, _ *crypto.Signer) {
			c.RawSubject, c.Subject.CommonName = nil, "system:kube-scheduler"
		}, "subject"},
		"a group": {Agent, func(c *certificate, _ *authority, _ *crypto.Signer) {
			c.RawSubject, c.Subject.Organization = nil, []string{"system:masters"}
		}, "subject"},
		"a CA": {Agent, func(c *certificate, _ *authority, _ *crypto.Signer) { c.IsCA = true }, "it is a CA"},
		"a further usage": {Agent, func(c *certificate, _ *authority, _ *crypto.Signer) {
			c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		}, "usage"},
		"no usage": {Agent, func(c *certificate, _ *authority, _ *crypto.Signer) { c.ExtKeyUsage = nil }, "usage"},
		"a usage that Go does not know": {Agent, func(c *certificate, _ *authority, _ *crypto.Signer) {
			c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 2, 3, 4}}
		}, "usage"},
		"any usage": {Agent, func(c *certificate, _ *authority, _ *crypto.Signer) {
			c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageAny)
		}, "usage"},
		"signing certificates": {Agent, func(c *certificate, _ *authority,
			_ *crypto.Signer) {
			c.KeyUsage |= x509.KeyUsageCertSign
		}, "usage"},
		"an e-mail address": {APIServer, func(c *certificate, _ *authority, _ *crypto.Signer) {
			c.EmailAddresses = []string{"a@example.net"}
		}, "e-mail or URI names"},
		"a URI": {APIServer, func(c *certificate, _ *authority, _ *crypto.Signer) { c.URIs = []*url.URL{spiffe} },
			"e-mail or URI names"},
		"a further host": {APIServer, func(c *certificate, _ *authority, _ *crypto.Signer) {
			c.DNSNames = append(c.DNSNames, "www.example.net")
		}, "the name www.example.net too many"},
		"an address less": {APIServer, func(c *certificate, _ *authority,
			_ *crypto.Signer) {
			c.IPAddresses = c.IPAddresses[1:]
		}, "it lacks the address"},
		"a longer life": {APIServer, func(c *certificate, _ *authority, _ *crypto.Signer) {
			c.NotAfter = c.NotAfter.Add(time.Second)
		}, "ends at 2027-04-15T12:00:01Z, and was asked for until 2027-04-15T12:00:00Z"},
		"a later begin": {APIServer, func(c *certificate, _ *authority,
			_ *crypto.Signer) {
			c.NotBefore = t0.Add(time.Hour)
		}, "does not verify"},
		"another key": {APIServer, func(_ *certificate, _ *authority, key *crypto.Signer) { *key = other },
			"for another key"},
		"another CA": {APIServer, func(_ *certificate, ca *authority,
			_ *crypto.Signer) {
			*ca = b.authorities[FrontProxy]
		},
			"does not verify"},
	} {
		i := testIssuer(t, b, t0)
		i.signer = func(ca authority, s Spec, key crypto.Signer, now time.Time) ([]byte, error) {
			text, err := signWithCFSSL(ca, s, key, now)
			if err != nil {
				return nil, err
			}
			honest, err := parseCertificate(text)
			if err != nil {
				return nil, err
			}
			honest.ExtraExtensions = nil
			c.lie(honest, &ca, &key)
			der, err := x509.CreateCertificate(rand.Reader, honest, ca.cert, key.Public(), ca.key)
			return pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: der}), err
		}
		_, err := i.issue(specOf(t, c.leaf))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Of a request a profile takes the public key and nothing else, and a profile that does not exist issues nothing with a
// name.
func TestARequestThatAsksForMoreIsNotHeard(t *testing.T) {
	spiffe, err := url.Parse("spiffe://a/b")
	if err != nil {
		t.Fatal(err)
	}
	asked := request(t, x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "asked", Organization: []string{"system:masters"}},
		DNSNames: []string{"asked.example"}, IPAddresses: []net.IP{{8, 8, 8, 8}},
		EmailAddresses: []string{"a@example.net"}, URIs: []*url.URL{spiffe},
	})
	for u := range usages {
		rules, err := profiles(u)
		if err != nil {
			t.Fatal(err)
		}
		s, _ := bareSigner(t, rules)
		for _, hosts := range [][]string{{}, nil} {
			c := bareSign(t, s, signer.SignRequest{Request: asked, Profile: string(u), Hosts: hosts,
				Subject: &signer.Subject{}})
			if n := len(c.DNSNames) + len(c.IPAddresses) + len(c.EmailAddresses) + len(c.URIs); n > 0 ||
				len(c.Subject.Names) > 0 {
				t.Errorf("%s, hosts %v: it has %d of the request's names, and the subject %s", u, hosts, n, c.Subject)
			}
		}
		for _, r := range []signer.SignRequest{
			{Subject: &signer.Subject{CN: "system:masters"}, Hosts: []string{}},
			{Subject: &signer.Subject{}, Hosts: []string{"www.example.net"}},
		} {
			r.Request, r.Profile = asked, "none"
			if _, err := s.Sign(r); err == nil {
				t.Errorf("%s: a profile that does not exist signs %v", u, r.Hosts)
			}
		}
	}
}

func TestIssuerRefusesABundleThatDoesNotFitItself(t *testing.T) {
	b, other := testBundle(t), testBundle(t)
	ca := b.authorities[Kubernetes]
	ca.key = other.authorities[Kubernetes].key
	b.authorities[Kubernetes] = ca
	if _, err := newIssuer(b, t0); err == nil ||
		!strings.Contains(err.Error(), "authorities.kubernetes.key: does not fit the certificate") {
		t.Errorf("error %v", err)
	}
}

// A CA of another maker may be constrained so that cfssl signs what nobody accepts. The read-back finds that.
func TestIssuedLeafMustVerifyUnderItsCA(t *testing.T) {
	b := testBundle(t)
	ca := b.authorities[Kubernetes]
	template := *ca.cert
	template.PermittedIPRanges = []*net.IPNet{{IP: net.IP{192, 168, 0, 0}, Mask: net.CIDRMask(16, 32)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, ca.key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	b.authorities[Kubernetes] = ca
	if _, err := testIssuer(t, b, t0).issue(specOf(t, APIServer)); err == nil ||
		!strings.Contains(err.Error(), "does not verify") {
		t.Errorf("error %v", err)
	}
}
