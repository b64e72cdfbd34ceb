package certs

import (
	"crypto"
	"crypto/x509"
	"strings"
	"testing"
)

func TestAPairIsALeafWithItsChainAndItsKey(t *testing.T) {
	b := testBundle(t)
	p, ca := mustIssue(t, b, Agent, t0), b.authorities[Kubernetes].cert
	encoded := func(key crypto.Signer, certificates ...*x509.Certificate) []byte {
		text, err := encodeKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return append(encodeCertificates(certificates...), text...)
	}
	got, err := parsePair(encoded(p.key, p.cert, ca))
	if err != nil || !got.cert.Equal(p.cert) {
		t.Errorf("a leaf before its CA: %v, %v", got.cert, err)
	}
	weak := weakKey(t)
	der, err := x509.CreateCertificate(nil, p.cert, ca, weak.Public(), b.authorities[Kubernetes].key)
	if err != nil {
		t.Fatal(err)
	}
	small, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"the CA before its leaf": {encoded(p.key, ca, p.cert), "the private key does not fit the certificate"},
		"two keys": {append(encoded(p.key), encoded(p.key, p.cert)...),
			"PEM block 3 is a second private key"},
		"a weak key":     {encoded(weak, small), "weak key: ECDSA on P-224"},
		"no key":         {encodeCertificates(p.cert), "no private key"},
		"no certificate": {encoded(p.key), "no certificate"},
	} {
		if _, err := parsePair(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
