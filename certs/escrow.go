package certs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
)

const (
	// MinPassphrase is how many characters an escrow's passphrase has at least. What it protects never changes, so
	// whoever has the file has years to guess; scrypt makes each guess take about a second.
	MinPassphrase = 12
	// MaxEscrow is far above any bundle: a file that is larger is something else.
	MaxEscrow = 1 << 20
)

// ErrPassphrase is in the error of OpenEscrow where the passphrase is not the one with which the file was encrypted.
var ErrPassphrase = errors.New("the passphrase does not open it")

// Escrow is the bundle encrypted with a passphrase, for keeping outside of the cluster's record and its seal key: an
// armored age file (https://age-encryption.org/v1, scrypt), which `age --decrypt` opens too, without quorate.
func (b *Bundle) Escrow(passphrase string) ([]byte, error) {
	plaintext, err := b.Encode()
	if err != nil {
		return nil, err
	}
	if n := len([]rune(passphrase)); n < MinPassphrase {
		return nil, fmt.Errorf("encrypt %s: the passphrase has %d characters; at least %d are needed", b, n,
			MinPassphrase)
	}
	recipient, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", b, err)
	}
	var out bytes.Buffer
	armored := armor.NewWriter(&out)
	w, err := age.Encrypt(armored, recipient)
	if err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", b, err)
	}
	_, err = w.Write(plaintext)
	if err = errors.Join(err, w.Close(), armored.Close()); err != nil {
		return nil, fmt.Errorf("encrypt %s: %w", b, err)
	}
	return out.Bytes(), nil
}

// Encrypted reports whether data is an escrow that a passphrase opens.
func Encrypted(data []byte) bool {
	return strings.HasPrefix(strings.TrimSpace(string(data[:min(len(data), 256)])), armor.Header)
}

// OpenEscrow is the inverse of Escrow. The bundle in it is decoded as strictly as the record's own.
func OpenEscrow(data []byte, passphrase string) (*Bundle, error) {
	identity, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, fmt.Errorf("open escrow: %w", err)
	}
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(data)), identity)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, fmt.Errorf("open escrow: %w", ErrPassphrase)
	}
	if err != nil {
		return nil, fmt.Errorf("open escrow: it is damaged: %w", err)
	}
	plaintext, err := io.ReadAll(io.LimitReader(r, MaxEscrow))
	if err != nil {
		return nil, fmt.Errorf("open escrow: it is damaged: %w", err)
	}
	return DecodeBundle(plaintext)
}
