package certs

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestACASignedWithABrokenHashIsRefused(t *testing.T) {
	ca := testBundle(t).authorities[Kubernetes].cert
	if err := checkAuthority(ca); err != nil {
		t.Fatal(err)
	}
	for _, a := range []x509.SignatureAlgorithm{x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1,
		x509.ECDSAWithSHA1} {
		weak := *ca
		weak.SignatureAlgorithm = a
		if err := checkAuthority(&weak); err == nil || !strings.Contains(err.Error(), "signed with "+a.String()) {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func TestKeysHaveTheRightKindAndSize(t *testing.T) {
	for _, c := range []struct {
		bits, exponent int
		strong         bool
	}{
		{2048, 65537, true}, {8192, 65537, true}, {4096, 1<<31 - 1, true},
		{2047, 65537, false}, {8193, 65537, false}, {2048, 3, false}, {2048, 65535, false},
	} {
		n := new(big.Int).Lsh(big.NewInt(1), uint(c.bits-1))
		if err := strong(&rsa.PublicKey{N: n, E: c.exponent}); (err == nil) != c.strong {
			t.Errorf("%d bits, exponent %d: %v", c.bits, c.exponent, err)
		}
	}
	if err := strong(ed25519.PublicKey{}); err == nil {
		t.Error("a key of a kind that not every program here takes is strong")
	}
}

func TestOneServiceAccountKeyIsNotListedTwice(t *testing.T) {
	b := testBundle(t)
	b.serviceAccount = append(b.serviceAccount, b.serviceAccount[0])
	const want = "serviceAccountKeys[1]: has the same key as serviceAccountKeys[0]"
	if err := b.validate(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A bundle is of no use before it was made, nor before each of its CAs begins, nor once one has ended.
func TestABundleIsCheckedAgainstTheClock(t *testing.T) {
	later := func(c *x509.Certificate) { c.NotBefore = t0.Add(time.Hour) }
	for _, name := range Authorities() {
		b := testBundle(t)
		b.authorities[name] = remade(t, b.authorities[name], later)
		for now, valid := range map[time.Time]bool{t0: false, t0.Add(time.Hour - time.Second): false,
			t0.Add(time.Hour): true} {
			err := b.Check(now)
			if (err == nil) != valid || err != nil &&
				!strings.Contains(err.Error(), string(name)+" CA: not valid before 2027-01-15T13:00:00Z") {
				t.Errorf("the %s CA begins an hour later, and now is %s: %v", name, stamp(now), err)
			}
			if future := b.FromTheFuture(now); (future == nil) != valid {
				t.Errorf("the %s CA begins an hour later, and now is %s: %v", name, stamp(now), future)
			}
		}
		end := b.authorities[name].cert.NotAfter
		if b.FromTheFuture(end) != nil || b.Check(end) == nil || b.Check(end.Add(-time.Second)) != nil {
			t.Errorf("the %s CA's end: %v", name, b.Check(end))
		}
	}
	b := testBundle(t) // its CAs are as old as before: a generation may list those of the one before it
	for later, valid := range map[time.Duration]bool{clockSlack: true, clockSlack + time.Second: false} {
		b.Created = t0.Add(later)
		if err := b.Check(t0); (err == nil) != valid || (b.FromTheFuture(t0) == nil) != valid {
			t.Errorf("created %s later: %v", later, err)
		}
	}
}
