package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// The PEM block types that this package writes.
const (
	blockCertificate = "CERTIFICATE"
	blockPublicKey   = "PUBLIC KEY"
	blockPrivateKey  = "PRIVATE KEY" // PKCS #8, which the key loaders of etcd, client-go and crypto/tls all read
)

// blocks splits PEM text strictly: text before, between or behind the blocks is an error, because a file that holds
// more than what it is read for was not written by whom we think.
func blocks(data []byte) ([]*pem.Block, error) {
	var out []*pem.Block
	for rest := bytes.TrimSpace(data); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		if !bytes.HasPrefix(rest, []byte("-----BEGIN ")) {
			return nil, fmt.Errorf("text outside of PEM block %d", len(out)+1)
		}
		b, after := pem.Decode(rest)
		if b == nil || bytes.Count(rest[:len(rest)-len(after)], []byte("-----BEGIN ")) != 1 {
			return nil, fmt.Errorf("PEM block %d is damaged", len(out)+1)
		}
		if len(b.Headers) != 0 {
			return nil, fmt.Errorf("PEM block %d has headers; an encrypted key cannot be used", len(out)+1)
		}
		out, rest = append(out, b), after
	}
	if len(out) == 0 {
		return nil, errors.New("no PEM block")
	}
	return out, nil
}

// parseCertificates reads PEM text that holds certificates and nothing else, at least one.
func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	bs, err := blocks(data)
	if err != nil {
		return nil, err
	}
	var out []*x509.Certificate
	for i, b := range bs {
		if b.Type != blockCertificate {
			return nil, fmt.Errorf("PEM block %d is %q, not %q", i+1, b.Type, blockCertificate)
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("PEM block %d: %w", i+1, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// parseCertificate reads PEM text that holds exactly one certificate.
func parseCertificate(data []byte) (*x509.Certificate, error) {
	cs, err := parseCertificates(data)
	if err != nil {
		return nil, err
	}
	if len(cs) != 1 {
		return nil, fmt.Errorf("%d certificates where one is allowed", len(cs))
	}
	return cs[0], nil
}

// parseKey reads PEM text that holds exactly one private key, in any of the three usual forms.
func parseKey(data []byte) (crypto.Signer, error) {
	bs, err := blocks(data)
	if err != nil {
		return nil, err
	}
	if len(bs) != 1 {
		return nil, fmt.Errorf("%d PEM blocks where one private key is allowed", len(bs))
	}
	return parseKeyBlock(bs[0])
}

func parseKeyBlock(b *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch b.Type {
	case blockPrivateKey:
		key, err = x509.ParsePKCS8PrivateKey(b.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(b.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(b.Bytes)
	default:
		return nil, fmt.Errorf("PEM block is %q, not a private key", b.Type)
	}
	if err != nil {
		// the parser's error is not shown: it is about a secret
		return nil, errors.New("the private key cannot be parsed")
	}
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		return k, nil
	case *rsa.PrivateKey:
		return k, nil
	}
	return nil, fmt.Errorf("the private key is %T; ECDSA and RSA are allowed", key)
}

// parsePublicKeys reads PEM text that holds public keys and nothing else, at least one.
func parsePublicKeys(data []byte) error {
	bs, err := blocks(data)
	if err != nil {
		return err
	}
	for i, b := range bs {
		if b.Type != blockPublicKey {
			return fmt.Errorf("PEM block %d is %q, not %q", i+1, b.Type, blockPublicKey)
		}
		if _, err := x509.ParsePKIXPublicKey(b.Bytes); err != nil {
			return fmt.Errorf("PEM block %d: %w", i+1, err)
		}
	}
	return nil
}

func encodeCertificates(cs ...*x509.Certificate) []byte {
	var out []byte
	for _, c := range cs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: c.Raw})...)
	}
	return out
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockPrivateKey, Bytes: der}), nil
}

func encodePublicKeys(keys []crypto.Signer) ([]byte, error) {
	var out []byte
	for _, k := range keys {
		der, err := x509.MarshalPKIXPublicKey(k.Public())
		if err != nil {
			return nil, fmt.Errorf("encode public key: %w", err)
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: blockPublicKey, Bytes: der})...)
	}
	return out, nil
}
