package certs

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// pair is a leaf with its key, which is a pointer: fmt shows an address in its place.
type pair struct {
	key  crypto.Signer
	cert *x509.Certificate
}

// encode is the content of a leaf's file: certificate, then key, as kubelet-client-current.pem has them.
func (p pair) encode() ([]byte, error) {
	key, err := encodeKey(p.key)
	if err != nil {
		return nil, err
	}
	return append(encodeCertificates(p.cert), key...), nil
}

// tls is the pair for use in memory.
func (p pair) tls() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key, Leaf: p.cert}
}

// parsePair reads a leaf's file: certificates and one private key that fits the first of them.
func parsePair(data []byte) (pair, error) {
	bs, err := blocks(data)
	if err != nil {
		return pair{}, err
	}
	var p pair
	for i, b := range bs {
		if b.Type == blockCertificate {
			c, err := x509.ParseCertificate(b.Bytes)
			if err != nil {
				return pair{}, fmt.Errorf("PEM block %d: %w", i+1, err)
			}
			if p.cert == nil {
				p.cert = c
			}
			continue
		}
		if p.key != nil {
			return pair{}, fmt.Errorf("PEM block %d is a second private key", i+1)
		}
		if p.key, err = parseKeyBlock(b); err != nil {
			return pair{}, fmt.Errorf("PEM block %d: %w", i+1, err)
		}
	}
	switch {
	case p.cert == nil:
		return pair{}, errors.New("no certificate")
	case p.key == nil:
		return pair{}, errors.New("no private key")
	case !samePublicKey(p.cert.PublicKey, p.key.Public()):
		return pair{}, errors.New("the private key does not fit the certificate")
	}
	return p, strong(p.cert.PublicKey)
}

// find reads what stands in a leaf's place. The error is unread's: nothing is known of what is there.
func find(read reader, path string) (Found, error) {
	data, mode, err := read(path)
	if unread(err) {
		return Found{}, err
	}
	if err != nil {
		return Found{Err: err}, nil
	}
	p, err := parsePair(data)
	if err != nil {
		return Found{Err: fmt.Errorf("not a leaf: %w", err), Mode: mode}, nil
	}
	return Found{Cert: p.cert, Mode: mode}, nil
}

// reader is readRegular, or a test's.
type reader func(path string) ([]byte, fs.FileMode, error)

// errNotRegular: a link or a folder stands in a file's place. Who writes through it would write elsewhere.
var errNotRegular = errors.New("not a regular file")

// readRegular reads a file that is one.
func readRegular(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is %w", path, errNotRegular)
	}
	data, err := os.ReadFile(path)
	return data, info.Mode(), err
}

// unread says that reading failed for a reason that tells nothing of the file: a fault of the disk, or a lack of memory
// or descriptors. Such a file counts neither as there, nor as missing, nor as damaged.
func unread(err error) bool {
	return err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotRegular)
}
