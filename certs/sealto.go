package certs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
)

// ParseRecipient checks the public key of somebody, as age prints it: age1….
func ParseRecipient(key string) error {
	_, err := recipientsOf(key)
	return err
}

func recipientsOf(key string) ([]age.Recipient, error) {
	found, err := age.ParseRecipients(strings.NewReader(key))
	if err != nil || len(found) != 1 {
		return nil, errors.New("want one age public key, such as age1… (age-keygen prints it)")
	}
	return found, nil
}

// EncryptTo encrypts data for the owner of an age public key. `age --decrypt -i KEYFILE` opens it.
func EncryptTo(key string, data []byte) ([]byte, error) {
	to, err := recipientsOf(key)
	if err != nil {
		return nil, fmt.Errorf("encrypt to %s: %w", key, err)
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	if err == nil {
		_, err = w.Write(data)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("encrypt to %s: %w", key, err)
	}
	return out.Bytes(), nil
}
