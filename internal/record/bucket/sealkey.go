package bucket

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/crypto/nacl/secretbox"
)

// The schemes of seal keys.
const (
	schemeKMS   = "gcpkms"
	schemeLocal = "base64key"
)

// sealKey is the key that a bundle is sealed with.
type sealKey struct {
	scheme string
	sealer
}

// sealer seals and opens. Where the key itself has answered no, the error is ErrSealKey.
type sealer interface {
	seal(ctx context.Context, plaintext []byte) ([]byte, error)
	open(ctx context.Context, sealed []byte) ([]byte, error)
}

// parseSealKey does not use net/url, whose errors quote the URL, and never quotes it itself: a base64key URL is the
// key. Cloud KMS is reached by client.
func parseSealKey(keyURL string, client *http.Client) (sealKey, error) {
	const want = "want gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K or base64key://KEY"
	scheme, rest, ok := strings.Cut(keyURL, "://")
	if !ok {
		return sealKey{}, errors.New("it has no scheme: " + want)
	}
	switch scheme {
	case schemeKMS:
		parts := strings.Split(rest, "/")
		if len(parts) != 8 || parts[0] != "projects" || parts[2] != "locations" || parts[4] != "keyRings" ||
			parts[6] != "cryptoKeys" {
			return sealKey{}, fmt.Errorf("%q names no Cloud KMS key: %s", keyURL, want)
		}
		return sealKey{scheme, kmsKey{client: client, name: rest}}, nil
	case schemeLocal:
		key, err := parseBase64Key(rest)
		return sealKey{scheme, key}, err
	}
	return sealKey{}, errors.New("its scheme is not known: " + want)
}

// localKey is a key of one machine, for tests.
type localKey [32]byte

// parseBase64Key takes both alphabets.
func parseBase64Key(text string) (key localKey, err error) {
	raw, err := base64.URLEncoding.DecodeString(text)
	if err != nil {
		raw, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil || len(raw) != len(key) {
		return key, errors.New("base64key: want 32 bytes in base64 (head -c 32 /dev/urandom | base64)")
	}
	return localKey(raw), nil
}

// nonceSize is the length of what is random in each seal, and stands before it.
const nonceSize = 24

func (k localKey) seal(_ context.Context, plaintext []byte) ([]byte, error) {
	var nonce [nonceSize]byte
	rand.Read(nonce[:]) // never fails
	return secretbox.Seal(nonce[:], plaintext, &nonce, (*[32]byte)(&k)), nil
}

func (k localKey) open(_ context.Context, sealed []byte) ([]byte, error) {
	if len(sealed) < nonceSize {
		return nil, marked{errors.New("too short for a seal"), ErrSealKey}
	}
	nonce := [nonceSize]byte(sealed[:nonceSize])
	plaintext, ok := secretbox.Open(nil, sealed[nonceSize:], &nonce, (*[32]byte)(&k))
	if !ok {
		return nil, marked{errors.New("another key, or damage"), ErrSealKey}
	}
	return plaintext, nil
}
