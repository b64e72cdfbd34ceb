package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudflare/cfssl/config"
	"github.com/cloudflare/cfssl/csr"
	"github.com/cloudflare/cfssl/initca"
	"github.com/cloudflare/cfssl/signer"
	"github.com/cloudflare/cfssl/signer/local"
)

// These tests use cfssl bare, without the policy layer, and say what it does at the pinned version. Each is a reason
// for a line of policy.go or issue.go. Where one fails after an upgrade, cfssl has changed: look whether that line
// still does what it is for, then change the test.

// bareSigner is cfssl's signer as its documentation shows it.
func bareSigner(t *testing.T, rules *config.Signing) (*local.Signer, authority) {
	t.Helper()
	ca := testBundle(t).authorities[Kubernetes]
	s, err := local.NewSigner(ca.key, ca.cert, signer.DefaultSigAlgo(ca.key), rules)
	if err != nil {
		t.Fatal(err)
	}
	return s, ca
}

// request is a signed request with the given content.
func request(t *testing.T, template x509.CertificateRequest) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func bareSign(t *testing.T, s *local.Signer, r signer.SignRequest) *x509.Certificate {
	t.Helper()
	text, err := s.Sign(r)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseCertificate(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rules is a policy with one profile "server".
func rules(edit func(*config.SigningProfile)) *config.Signing {
	p := &config.SigningProfile{Usage: []string{"digital signature", "server auth"}, Expiry: time.Hour}
	edit(p)
	return &config.Signing{Default: config.DefaultConfig(), Profiles: map[string]*config.SigningProfile{"server": p}}
}

func TestCFSSLNameWhitelistSeesNeitherAddressesNorOrganizations(t *testing.T) {
	s, _ := bareSigner(t, rules(func(p *config.SigningProfile) { p.NameWhitelist = regexp.MustCompile(`^kubernetes$`) }))
	c := bareSign(t, s, signer.SignRequest{Profile: "server", Request: request(t, x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "kubernetes", Organization: []string{"system:masters"}},
		IPAddresses: []net.IP{net.ParseIP("8.8.8.8")},
	})})
	if c.Subject.Organization[0] != "system:masters" || len(c.IPAddresses) != 1 {
		t.Errorf("issued %s %v", c.Subject, c.IPAddresses)
	}
}

func TestCFSSLNameWhitelistIsNotAnchored(t *testing.T) {
	s, _ := bareSigner(t, rules(func(p *config.SigningProfile) { p.NameWhitelist = regexp.MustCompile(`kubernetes`) }))
	c := bareSign(t, s, signer.SignRequest{Profile: "server", Hosts: []string{"kubernetes.evil.example"},
		Request: request(t, x509.CertificateRequest{})})
	if !slices.Equal(c.DNSNames, []string{"kubernetes.evil.example"}) {
		t.Errorf("issued %v", c.DNSNames)
	}
}

func TestCFSSLTakesTheDefaultForAnUnknownProfile(t *testing.T) {
	s, _ := bareSigner(t, rules(func(*config.SigningProfile) {}))
	c := bareSign(t, s, signer.SignRequest{Profile: "no-such-profile", Hosts: []string{"a"},
		Request: request(t, x509.CertificateRequest{})})
	if life := c.NotAfter.Sub(c.NotBefore); life != 365*24*time.Hour {
		t.Errorf("lives %s, the default is a year", life)
	}
	// Ours fits nothing.
	ours, err := profiles(UsageServer)
	if err != nil {
		t.Fatal(err)
	}
	s.SetPolicy(ours)
	for _, r := range []signer.SignRequest{{Hosts: []string{"a"}}, {Subject: &signer.Subject{CN: "a"}}} {
		r.Profile, r.Request = "no-such-profile", request(t, x509.CertificateRequest{})
		if _, err := s.Sign(r); err == nil {
			t.Errorf("our default profile issued %+v", r.Hosts)
		}
	}
}

func TestCFSSLWithoutPolicyIssuesServerAndClientForAYear(t *testing.T) {
	s, _ := bareSigner(t, nil)
	c := bareSign(t, s, signer.SignRequest{Hosts: []string{"a"}, Request: request(t, x509.CertificateRequest{})})
	if !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}) {
		t.Errorf("usages %v", c.ExtKeyUsage)
	}
	if life := c.NotAfter.Sub(c.NotBefore); life != 365*24*time.Hour {
		t.Errorf("lives %s", life)
	}
}

func TestCFSSLCopiesTheRequestUnlessToldWhat(t *testing.T) {
	oid := asn1.ObjectIdentifier{1, 2, 3, 4}
	uri, _ := url.Parse("spiffe://a/b")
	full := request(t, x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "csr", Organization: []string{"csr-o"},
			ExtraNames: []pkix.AttributeTypeAndValue{{Type: oid, Value: "hidden"}}},
		DNSNames: []string{"csr.example"}, URIs: []*url.URL{uri}, EmailAddresses: []string{"a@b.c"},
	})
	s, _ := bareSigner(t, rules(func(*config.SigningProfile) {}))
	c := bareSign(t, s, signer.SignRequest{Profile: "server", Request: full})
	if len(c.DNSNames)+len(c.URIs)+len(c.EmailAddresses) != 3 || len(c.Subject.Names) != 3 {
		t.Errorf("copied %s %v %v %v", c.Subject, c.DNSNames, c.URIs, c.EmailAddresses)
	}
	// An empty field of the subject that we give is filled from the request.
	c = bareSign(t, s, signer.SignRequest{Profile: "server", Request: full, Subject: &signer.Subject{CN: "ours"}})
	if c.Subject.CommonName != "ours" || !slices.Equal(c.Subject.Organization, []string{"csr-o"}) {
		t.Errorf("subject %s", c.Subject)
	}
	// With the whitelist of profiles nothing of it arrives, given hosts that are empty but not nil.
	s.SetPolicy(rules(func(p *config.SigningProfile) {
		p.CSRWhitelist = &config.CSRWhitelist{PublicKey: true, PublicKeyAlgorithm: true, SignatureAlgorithm: true}
	}))
	c = bareSign(t, s, signer.SignRequest{Profile: "server", Request: full, Hosts: []string{},
		Subject: &signer.Subject{CN: "ours"}})
	if len(c.DNSNames)+len(c.URIs)+len(c.EmailAddresses) != 0 || c.Subject.String() != "CN=ours" {
		t.Errorf("copied %s %v %v %v", c.Subject, c.DNSNames, c.URIs, c.EmailAddresses)
	}
}

func TestCFSSLNilHostsKeepTheRequestsNames(t *testing.T) {
	s, _ := bareSigner(t, rules(func(*config.SigningProfile) {}))
	r := request(t, x509.CertificateRequest{DNSNames: []string{"csr.example"}})
	if c := bareSign(t, s, signer.SignRequest{Profile: "server", Request: r}); len(c.DNSNames) != 1 {
		t.Errorf("nil: %v", c.DNSNames)
	}
	if c := bareSign(t, s, signer.SignRequest{Profile: "server", Request: r, Hosts: []string{}}); len(c.DNSNames) != 0 {
		t.Errorf("empty: %v", c.DNSNames)
	}
}

func TestCFSSLLetsALeafOutliveItsCA(t *testing.T) {
	s, ca := bareSigner(t, rules(func(p *config.SigningProfile) { p.Expiry = 20 * 365 * 24 * time.Hour }))
	c := bareSign(t, s, signer.SignRequest{Profile: "server", Hosts: []string{"a"},
		Request: request(t, x509.CertificateRequest{})})
	if !c.NotAfter.After(ca.cert.NotAfter) {
		t.Errorf("leaf ends %s, CA %s", c.NotAfter, ca.cert.NotAfter)
	}
}

func TestCFSSLSignsWithAnExpiredCA(t *testing.T) {
	ca, err := newAuthority(Kubernetes, "uid-1", 1, time.Now().Add(-2*authorityLifetime))
	if err != nil {
		t.Fatal(err)
	}
	s, err := local.NewSigner(ca.key, ca.cert, signer.DefaultSigAlgo(ca.key), nil)
	if err != nil {
		t.Fatal(err)
	}
	bareSign(t, s, signer.SignRequest{Hosts: []string{"a"}, Request: request(t, x509.CertificateRequest{})})
}

func TestCFSSLFindsAMismatchedCAKeyOnlyWhenItSigns(t *testing.T) {
	_, ca := bareSigner(t, nil)
	other := testBundle(t).authorities[Kubernetes]
	s, err := local.NewSigner(other.key, ca.cert, signer.DefaultSigAlgo(other.key), nil)
	if err != nil {
		t.Fatalf("NewSigner looks at it now: %v", err)
	}
	if _, err := s.Sign(signer.SignRequest{Hosts: []string{"a"},
		Request: request(t, x509.CertificateRequest{})}); err == nil {
		t.Error("signed with a key that is not the CA's")
	}
}

func TestCFSSLSignsWeakKeys(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := bareSigner(t, nil)
	p224, err := csr.Generate(weakKey(t), &csr.CertificateRequest{CN: "a"})
	if err != nil {
		t.Fatal(err)
	}
	bareSign(t, s, signer.SignRequest{Request: string(p224)})
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, small)
	if err != nil {
		t.Fatal(err)
	}
	bareSign(t, s,
		signer.SignRequest{Request: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))})
}

func TestCFSSLRefusesACAInARequest(t *testing.T) {
	s, _ := bareSigner(t, nil)
	r, err := csr.Generate(testBundle(t).authorities[EtcdPeer].key, &csr.CertificateRequest{CN: "a",
		CA: &csr.CAConfig{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(signer.SignRequest{Request: string(r)}); err == nil {
		t.Error("issued a CA")
	}
}

// Up to 1.6.5 a request could bring its own extended key usage through copy_extensions. 1.7 ignores those that the CA
// sets.
func TestCFSSLCopyExtensionsNoLongerOverridesTheUsage(t *testing.T) {
	s, _ := bareSigner(t, rules(func(p *config.SigningProfile) { p.CopyExtensions = true }))
	client, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 2}})
	if err != nil {
		t.Fatal(err)
	}
	c := bareSign(t, s, signer.SignRequest{Profile: "server", Hosts: []string{"a"},
		Request: request(t, x509.CertificateRequest{
			ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Value: client}}})})
	if !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Errorf("usages %v", c.ExtKeyUsage)
	}
}

func TestCFSSLBackdatesFiveMinutesFromARoundedMinute(t *testing.T) {
	s, _ := bareSigner(t, rules(func(p *config.SigningProfile) { p.Backdate = 0 }))
	c := bareSign(t, s, signer.SignRequest{Profile: "server", Hosts: []string{"a"},
		Request: request(t, x509.CertificateRequest{})})
	if ago := time.Since(c.NotBefore); ago < 4*time.Minute || ago > 6*time.Minute || c.NotBefore.Second() != 0 {
		t.Errorf("not before %s, %s ago", c.NotBefore, ago)
	}
	// With explicit times it takes them as they are: what we do, since now is ours.
	c = bareSign(t, s, signer.SignRequest{Profile: "server", Hosts: []string{"a"},
		Request:   request(t, x509.CertificateRequest{}),
		NotBefore: t0.Add(7 * time.Second), NotAfter: t0.Add(time.Hour)})
	if !c.NotBefore.Equal(t0.Add(7*time.Second)) || !c.NotAfter.Equal(t0.Add(time.Hour)) {
		t.Errorf("valid %s to %s", c.NotBefore, c.NotAfter)
	}
}

func TestCFSSLMakesNamesOfWhateverIsNoAddress(t *testing.T) {
	for host, want := range map[string]string{
		"10.0.0.1 ":    "DNS",
		"010.0.0.1":    "DNS",
		"10.0.0.1/24":  "DNS",
		"*.x":          "DNS",
		"*":            "URI",
		"fe80::1%eth0": "URI",
		"/abs/path":    "URI",
		"a@b.c":        "e-mail",
		"10.0.0.1":     "address",
	} {
		s, _ := bareSigner(t, rules(func(*config.SigningProfile) {}))
		c := bareSign(t, s, signer.SignRequest{Profile: "server", Hosts: []string{host},
			Request: request(t, x509.CertificateRequest{})})
		got := map[bool]string{len(c.DNSNames) > 0: "DNS", len(c.URIs) > 0: "URI", len(c.EmailAddresses) > 0: "e-mail",
			len(c.IPAddresses) > 0: "address"}[true]
		if got != want {
			t.Errorf("%q became %q, want %q", host, got, want)
		}
	}
}

func TestCFSSLInitCAMakesUnlimitedPathsAndTakesTheClocksTime(t *testing.T) {
	text, _, key, err := initca.New(&csr.CertificateRequest{CN: "a", CA: &csr.CAConfig{}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseCertificate(text)
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxPathLen != -1 || c.MaxPathLenZero {
		t.Errorf("path length %d", c.MaxPathLen)
	}
	if ago := time.Since(c.NotBefore); ago < 4*time.Minute || ago > 6*time.Minute {
		t.Errorf("not before %s ago", ago)
	}
	if !strings.HasPrefix(string(key), "-----BEGIN EC PRIVATE KEY-----") {
		t.Error("keys are no longer SEC 1")
	}
}

func TestCFSSLDropsUnknownUsagesUnlessAllAre(t *testing.T) {
	p := config.SigningProfile{Usage: []string{"digital signature", "servre auth"}}
	if _, eku, unknown := p.Usages(); len(eku) != 0 || len(unknown) != 1 {
		t.Errorf("%v %v", eku, unknown)
	}
	s := rules(func(p *config.SigningProfile) { p.Usage = []string{"digital signature", "servre auth"} })
	if !s.Valid() {
		t.Error("cfssl finds a misspelt usage now")
	}
	for u, words := range usages {
		p := config.SigningProfile{Usage: words}
		if _, eku, unknown := p.Usages(); len(unknown) != 0 || fmt.Sprint(eku) != fmt.Sprint(extended[u]) {
			t.Errorf("%s: cfssl reads %v as %v, unknown %v", u, words, eku, unknown)
		}
	}
}
