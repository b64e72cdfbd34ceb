package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ErrAuthorityExpired is in the error of Bundle.Check, and of all that begins with it, when a CA's time is over: only a
// CA rotation helps. cfssl would go on signing.
var ErrAuthorityExpired = errors.New("the CA has expired: rotate it")

// clockSlack is how far ahead of this machine's clock a bundle's creation may be. Beyond it one of two clocks is so
// wrong that leaves made by the one are not valid by the other.
const clockSlack = backdate

// validate checks all that does not depend on the time. Its errors begin with the field.
func (b *Bundle) validate() error {
	switch {
	case b.ClusterUID == "":
		return errors.New("clusterUID: missing")
	case b.Generation == 0:
		return errors.New("generation: found 0, generations count from 1")
	case b.Created.IsZero():
		return errors.New("created: missing")
	}
	for _, name := range slices.Sorted(maps.Keys(b.authorities)) {
		if !slices.Contains(Authorities(), name) {
			return fmt.Errorf("authorities.%s: unknown; the authorities are %v", name, Authorities())
		}
	}
	for _, name := range Authorities() {
		a, ok := b.authorities[name]
		if !ok {
			return fmt.Errorf("authorities.%s: missing", name)
		}
		if err := a.validate(); err != nil {
			return fmt.Errorf("authorities.%s.%w", name, err)
		}
	}
	if err := b.validateServiceAccount(); err != nil {
		return err
	}
	if err := validateEncryption(b.encryption); err != nil {
		return err
	}
	return b.validateDistinct()
}

func (a authority) validate() error {
	if err := checkAuthority(a.cert); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	if !samePublicKey(a.cert.PublicKey, a.key.Public()) {
		return errors.New("key: does not fit the certificate")
	}
	for i, f := range a.former {
		if err := checkAuthority(f); err != nil {
			return fmt.Errorf("former[%d]: %w", i, err)
		}
		if f.Equal(a.cert) {
			return fmt.Errorf("former[%d]: is the certificate that issues now", i)
		}
	}
	return nil
}

// checkAuthority checks that a certificate may be a CA's, whoever made it.
func checkAuthority(c *x509.Certificate) error {
	switch {
	case !c.BasicConstraintsValid || !c.IsCA:
		return errors.New("not a CA certificate (basic constraints)")
	case c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("its key usage does not allow signing certificates")
	}
	switch c.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		return fmt.Errorf("signed with %s; SHA-256 or better is allowed", c.SignatureAlgorithm)
	}
	return strong(c.PublicKey)
}

// strong refuses keys that cfssl accepts: P-224, small RSA, and RSA so large that a handshake becomes an attack.
func strong(pub crypto.PublicKey) error {
	switch k := pub.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() && k.Curve != elliptic.P384() && k.Curve != elliptic.P521() {
			return fmt.Errorf("weak key: ECDSA on %s; P-256, P-384 and P-521 are allowed", k.Curve.Params().Name)
		}
		return nil
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < 2048 || n > 8192 || k.E < 65537 {
			return fmt.Errorf("weak key: RSA with %d bits and exponent %d; 2048 to 8192 bits and at least 65537 are "+
				"allowed", n, k.E)
		}
		return nil
	}
	return fmt.Errorf("the key is %T; ECDSA and RSA are allowed", pub)
}

func (b *Bundle) validateServiceAccount() error {
	if len(b.serviceAccount) == 0 {
		return errors.New("serviceAccountKeys: missing")
	}
	for i, k := range b.serviceAccount {
		if err := strong(k.Public()); err != nil {
			return fmt.Errorf("serviceAccountKeys[%d]: %w", i, err)
		}
	}
	return nil
}

// validateDistinct refuses one key in two roles. With one CA for clients and for the front proxy any client could claim
// to be any user; with one for etcd's clients and peers the apiserver's certificate opens the peer port.
func (b *Bundle) validateDistinct() error {
	owner, field := map[string]string{}, map[string]string{}
	claim := func(pub crypto.PublicKey, who, where string) error {
		p, err := pin(pub)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if o, taken := owner[p]; taken && o != who {
			return fmt.Errorf("%s: has the same key as %s; every role needs its own", where, field[p])
		}
		owner[p], field[p] = who, where
		return nil
	}
	for _, name := range Authorities() {
		for i, c := range b.authorities[name].trust() {
			where := fmt.Sprintf("authorities.%s.certificate", name)
			if i > 0 {
				where = fmt.Sprintf("authorities.%s.former[%d]", name, i-1)
			}
			if err := claim(c.PublicKey, string(name), where); err != nil {
				return err
			}
		}
	}
	for i, k := range b.serviceAccount {
		where := fmt.Sprintf("serviceAccountKeys[%d]", i)
		if err := claim(k.Public(), where, where); err != nil {
			return err
		}
	}
	return nil
}

// Check is the part of the validation that depends on the time. Nothing may be issued from a bundle that does not pass.
func (b *Bundle) Check(now time.Time) error {
	if err := b.FromTheFuture(now); err != nil {
		return err
	}
	for _, name := range Authorities() {
		if c := b.authorities[name].cert; !now.Before(c.NotAfter) {
			return fmt.Errorf("check %s: %s CA: not valid after %s: %w", b, name, stamp(c.NotAfter),
				ErrAuthorityExpired)
		}
	}
	return nil
}

// FromTheFuture is the part of Check that time heals. An error means that this machine's clock is behind, or that the
// clock was ahead by which the bundle or one of its CAs was made.
func (b *Bundle) FromTheFuture(now time.Time) error {
	if b.Created.After(now.Add(clockSlack)) {
		return fmt.Errorf("check %s: it was created at %s, but this machine's clock says %s: one of the clocks "+
			"is wrong",
			b, b.Created.Format(time.RFC3339), stamp(now))
	}
	for _, name := range Authorities() {
		if c := b.authorities[name].cert; now.Before(c.NotBefore) {
			return fmt.Errorf("check %s: %s CA: not valid before %s, and now is %s", b, name, stamp(c.NotBefore),
				stamp(now))
		}
	}
	return nil
}

// samePublicKey compares without regard to how the keys were loaded.
func samePublicKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// pin is the SHA-256 of a public key (SPKI) in hexadecimal: a name for a key that may be printed.
func pin(pub crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}
