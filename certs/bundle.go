package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Authorities lists the four in the order in which they are made, written and shown.
func Authorities() []Authority { return []Authority{Kubernetes, FrontProxy, EtcdPeer, EtcdClient} }

// encryptionKeyBytes is secretbox's only key size.
const encryptionKeyBytes = 32

// Bundle is what all replicas of a cluster share and no one else may have: the keys of the four CAs, the
// service-account keys and the keys that encrypt secrets in etcd. The secrets are in unexported fields, and every way
// of printing the value shows its generation only. A Bundle does not change; a rotation makes another one with a higher
// generation.
type Bundle struct {
	// ClusterUID is the inception's uid: a bundle serves one cluster.
	ClusterUID string
	// Generation counts from 1. A replica that has seen one refuses any older.
	Generation uint64
	// Created is when this generation was made.
	Created time.Time

	authorities map[Authority]authority
	// serviceAccount keys, newest first: the first signs, all verify.
	serviceAccount []crypto.Signer
	// encryption keys, newest first: the first encrypts, all decrypt.
	encryption []encryptionKey
}

// authority is one CA of the bundle.
type authority struct {
	cert *x509.Certificate
	// key is always a pointer, so that fmt shows an address where it meets it in here.
	key crypto.Signer
	// former are trusted and issue nothing: what they issued is still in use while a rotation is under way.
	former []*x509.Certificate
}

// encryptionKey is one key of the apiserver's EncryptionConfiguration. The name is stored with every value that it
// encrypted, so it never changes.
type encryptionKey struct {
	name   string
	secret []byte
}

// NewBundle makes generation 1 for a cluster: four CAs that live ten years, one service-account key and one encryption
// key.
func NewBundle(clusterUID string, now time.Time) (*Bundle, error) {
	if clusterUID == "" {
		return nil, fmt.Errorf("make bundle: the cluster's uid is empty")
	}
	b := &Bundle{ClusterUID: clusterUID, Generation: 1, Created: now.UTC().Truncate(time.Second),
		authorities: map[Authority]authority{}}
	for _, a := range Authorities() {
		ca, err := newAuthority(a, clusterUID, b.Generation, now)
		if err != nil {
			return nil, fmt.Errorf("make bundle: %s CA: %w", a, err)
		}
		b.authorities[a] = ca
	}
	sa, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("make bundle: service-account key: %w", err)
	}
	b.serviceAccount = []crypto.Signer{sa}
	secret := make([]byte, encryptionKeyBytes)
	rand.Read(secret) // never fails: crypto/rand ends the process instead
	b.encryption = []encryptionKey{{name: fmt.Sprintf("g%d", b.Generation), secret: secret}}
	return b, nil
}

// newKey is the one place where keys are made: ECDSA P-256. RSA-2048 takes 175 times as long to make, and the key
// loaders of the Kubernetes components refuse Ed25519.
func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// trust is every certificate by which a replica accepts what the authority issued, the issuing one first.
func (a authority) trust() []*x509.Certificate {
	return append([]*x509.Certificate{a.cert}, a.former...)
}

// String names the generation and shows no key.
func (b *Bundle) String() string {
	if b == nil {
		return "no bundle"
	}
	return fmt.Sprintf("bundle generation %d of cluster %s [keys redacted]", b.Generation, b.ClusterUID)
}

// Format shows String for every verb: without it %#v and %d would print the keys.
func (b *Bundle) Format(f fmt.State, _ rune) { io.WriteString(f, b.String()) }

// LogValue is what slog prints.
func (b *Bundle) LogValue() slog.Value { return slog.StringValue(b.String()) }

// String shows no key.
func (k encryptionKey) String() string { return "encryption key " + k.name + " [redacted]" }

// Format shows String for every verb.
func (k encryptionKey) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }
