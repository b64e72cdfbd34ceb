package certs

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/cloudflare/cfssl/config"
	"github.com/cloudflare/cfssl/csr"
	"github.com/cloudflare/cfssl/initca"
	"github.com/cloudflare/cfssl/log"
	"github.com/cloudflare/cfssl/signer"
	"github.com/cloudflare/cfssl/signer/local"
)

const (
	// authorityLifetime is that of kubeadm's CAs.
	authorityLifetime = 3650 * 24 * time.Hour
	// backdate is how long before it is issued a certificate becomes valid. With less than the difference of two
	// clocks, two replicas do not hear each other: the one that is behind finds the other's leaf not valid yet, so that
	// a VM whose clock was an hour ahead could not come back before that hour was over. A day is more than a clock that
	// is kept in another time zone is wrong by. It costs nothing: a key that did not exist yet signed nothing.
	backdate = 24 * time.Hour
)

// quiet sets cfssl's log level before its first use: it prints each key and each serial to the standard logger, and its
// level is a global that must not change while it works.
var quiet = sync.OnceFunc(func() { log.Level = log.LevelError })

// newAuthority makes a CA for a generation. initca.New would do, but takes its time from the machine's clock; this is
// its policy with our time and without intermediate CAs. The generation in the name lets people tell two CAs apart.
func newAuthority(name Authority, clusterUID string, generation uint64, now time.Time) (authority, error) {
	quiet()
	key, err := newKey()
	if err != nil {
		return authority{}, err
	}
	request, err := csr.Generate(key, &csr.CertificateRequest{
		CN:    fmt.Sprintf("%s-ca-g%d", name, generation),
		Names: []csr.Name{{OU: clusterUID}},
		CA:    &csr.CAConfig{PathLenZero: true},
	})
	if err != nil {
		return authority{}, fmt.Errorf("request: %w", err)
	}
	rules := initca.CAPolicy()
	rules.Default.CAConstraint.MaxPathLenZero = true
	s, err := local.NewSigner(key, nil, signer.DefaultSigAlgo(key), rules)
	if err != nil {
		return authority{}, fmt.Errorf("signer: %w", err)
	}
	text, err := s.Sign(signer.SignRequest{Request: string(request), NotBefore: now.Add(-backdate),
		NotAfter: now.Add(authorityLifetime)})
	if err != nil {
		return authority{}, fmt.Errorf("sign: %w", err)
	}
	cert, err := parseCertificate(text)
	if err != nil {
		return authority{}, fmt.Errorf("read back: %w", err)
	}
	a := authority{cert: cert, key: key}
	return a, a.validate()
}

// issuer issues what is well-formed from a bundle that passed Check.
type issuer struct {
	bundle *Bundle
	now    time.Time
	// signer is signWithCFSSL, or a test's that lies.
	signer func(ca authority, s Spec, key crypto.Signer, now time.Time) ([]byte, error)
}

func newIssuer(b *Bundle, now time.Time) (*issuer, error) {
	quiet()
	if err := b.validate(); err != nil {
		return nil, fmt.Errorf("check %s: %w", b, err)
	}
	if err := b.Check(now); err != nil {
		return nil, err
	}
	return &issuer{bundle: b, now: now, signer: signWithCFSSL}, nil
}

// issue makes a key and its certificate.
func (i *issuer) issue(s Spec) (pair, error) {
	key, err := newKey()
	if err != nil {
		return pair{}, fmt.Errorf("issue %s: make key: %w", s.Leaf, err)
	}
	cert, err := i.sign(s, key)
	if err != nil {
		return pair{}, fmt.Errorf("issue %s: %w", s.Leaf, err)
	}
	return pair{key: key, cert: cert}, nil
}

// sign has cfssl sign and believes nothing of the result before it has read it: the certificate must be what the spec
// says and must verify as its users will verify it.
func (i *issuer) sign(s Spec, key crypto.Signer) (*x509.Certificate, error) {
	if err := s.wellFormed(); err != nil {
		return nil, fmt.Errorf("refused by policy: %w", err)
	}
	if err := strong(key.Public()); err != nil {
		return nil, fmt.Errorf("refused by policy: %w", err)
	}
	ca := i.bundle.authorities[s.Authority]
	if samePublicKey(ca.cert.PublicKey, key.Public()) {
		return nil, fmt.Errorf("refused by policy: the leaf's key is the CA's")
	}
	text, err := i.signer(ca, s, key, i.now)
	if err != nil {
		return nil, err
	}
	cert, err := parseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	if diff := s.differs(cert); diff != "" {
		return nil, fmt.Errorf("the issued certificate is not what was asked for: %s", diff)
	}
	if !samePublicKey(cert.PublicKey, key.Public()) {
		return nil, fmt.Errorf("the issued certificate is for another key")
	}
	if end := endOf(s, ca.cert, i.now); cert.NotAfter.After(end) {
		return nil, fmt.Errorf("the issued certificate ends at %s, and was asked for until %s", stamp(cert.NotAfter),
			stamp(end))
	}
	if err := verify(cert, i.now, ca.cert); err != nil {
		return nil, fmt.Errorf("the issued certificate does not verify: %w", err)
	}
	return cert, nil
}

// signWithCFSSL hands over an empty request, which only proves the key: subject, names and times come from the spec.
func signWithCFSSL(ca authority, s Spec, key crypto.Signer, now time.Time) ([]byte, error) {
	request, err := csr.Generate(key, &csr.CertificateRequest{})
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	rules, err := profiles(s.Usage)
	if err != nil {
		return nil, err
	}
	sg, err := local.NewSigner(ca.key, ca.cert, signer.DefaultSigAlgo(ca.key), rules)
	if err != nil {
		return nil, fmt.Errorf("signer: %w", err)
	}
	subject := &signer.Subject{CN: s.CommonName}
	if s.Organization != "" {
		subject.Names = []csr.Name{{O: s.Organization}}
	}
	hosts := append([]string{}, s.Names...) // never nil: nil would mean "as the request says"
	for _, a := range s.Addresses {
		hosts = append(hosts, a.String())
	}
	text, err := sg.Sign(signer.SignRequest{Request: string(request), Hosts: hosts, Subject: subject,
		Profile:   string(s.Usage),
		NotBefore: beginOf(ca.cert, now), NotAfter: endOf(s, ca.cert, now)})
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return text, nil
}

// beginOf is when a leaf issued now begins: never before its CA.
func beginOf(ca *x509.Certificate, now time.Time) time.Time {
	begin := now.Add(-backdate).Truncate(time.Second)
	if begin.Before(ca.NotBefore) {
		return ca.NotBefore
	}
	return begin
}

// endOf is when a leaf issued now ends: never after its CA, which cfssl would allow.
func endOf(s Spec, ca *x509.Certificate, now time.Time) time.Time {
	end := now.Add(s.Lifetime).Truncate(time.Second)
	if end.After(ca.NotAfter) {
		return ca.NotAfter
	}
	return end
}

// nothing matches no string at all.
var nothing = regexp.MustCompile(`[^\s\S]`)

// profiles is cfssl's policy for one usage. cfssl silently takes Default where it does not know a profile's name, so
// Default refuses every common name and every host name. From the request it takes nothing but the public key.
func profiles(u Usage) (*config.Signing, error) {
	words, ok := usages[u]
	if !ok {
		return nil, fmt.Errorf("refused by policy: usage %q is unknown", u)
	}
	onlyKey := &config.CSRWhitelist{PublicKey: true}
	return &config.Signing{
		Default: &config.SigningProfile{Usage: []string{"digital signature"}, Expiry: time.Second,
			NameWhitelist: nothing, CSRWhitelist: onlyKey},
		Profiles: map[string]*config.SigningProfile{string(u): {Usage: words, Expiry: LeafLifetime,
			CSRWhitelist: onlyKey}},
	}, nil
}
