package certs

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/internal/pattern"
)

// encryptedResources are the kinds of objects that can be encrypted in etcd.
var encryptedResources = []string{"secrets"}

// Encryption says what an apiserver with a certain EncryptionConfiguration does with the objects that can be encrypted.
// It names keys and holds none.
type Encryption struct {
	Resources []string `json:"resources"`
	// WritesWith is the key with which objects are written, named for the generation of the bundle that brought it;
	// empty: they are written in the clear.
	WritesWith string `json:"writesWith,omitempty"`
	// ReadsWith are all keys with which objects can be read, newest first. What is in the clear can always be read.
	ReadsWith []string `json:"readsWith"`
}

// EncryptionConfig makes the configuration of an apiserver that encrypts, or does not, with the keys on the disk. It
// needs no bundle, so a changed encryptionAtRest takes effect with a restart.
//
// The first provider writes, all read, and both are always listed. So some replicas may encrypt while others do not,
// and each reads what any of them has ever written.
func EncryptionConfig(f Files, encrypt bool) (config []byte, does Encryption, err error) {
	data, _, err := readRegular(f.EncryptionKeys())
	if err != nil {
		return nil, Encryption{}, fmt.Errorf("read encryption keys: %w", err)
	}
	keys, err := parseEncryption(data)
	if err != nil {
		return nil, Encryption{}, fmt.Errorf("read encryption keys: %s: %w", f.EncryptionKeys(), err)
	}
	does.Resources = encryptedResources
	for _, k := range keys {
		does.ReadsWith = append(does.ReadsWith, k.name)
	}
	if encrypt {
		does.WritesWith = keys[0].name
	}
	config, err = renderEncryption(keys, encrypt)
	return config, does, err
}

// encryptionKeyFile holds the keys on the disk, in the form of the configuration of an apiserver that encrypts.
func encryptionKeyFile(b *Bundle) ([]byte, error) { return renderEncryption(b.encryption, true) }

// The apiserver's EncryptionConfiguration, as much of it as is used here.
type (
	encryptionDocument struct {
		APIVersion string               `json:"apiVersion"`
		Kind       string               `json:"kind"`
		Resources  []encryptionResource `json:"resources"`
	}
	encryptionResource struct {
		Resources []string             `json:"resources"`
		Providers []encryptionProvider `json:"providers"`
	}
	encryptionProvider struct {
		Secretbox *encryptionKeys `json:"secretbox,omitempty"`
		Identity  *struct{}       `json:"identity,omitempty"`
	}
	encryptionKeys struct {
		Keys []encryptionDoc `json:"keys"`
	}
	encryptionDoc struct {
		Name   string `json:"name"`
		Secret string `json:"secret"` // base64
	}
)

// renderEncryption uses secretbox (XSalsa20 and Poly1305). Of the providers that need no plug-in it is the one that
// Kubernetes' documentation calls strong: aescbc is open to padding oracles, and aesgcm's random 96-bit nonces allow
// 200 000 writes a key, then it must be rotated.
func renderEncryption(keys []encryptionKey, encrypt bool) ([]byte, error) {
	providers := []encryptionProvider{{Secretbox: &encryptionKeys{encodeEncryption(keys)}}, {Identity: &struct{}{}}}
	if !encrypt {
		slices.Reverse(providers)
	}
	out, err := yaml.Marshal(encryptionDocument{APIVersion: "apiserver.config.k8s.io/v1",
		Kind:      "EncryptionConfiguration",
		Resources: []encryptionResource{{Resources: encryptedResources, Providers: providers}}})
	if err != nil {
		return nil, fmt.Errorf("encryption config: %w", err)
	}
	return out, nil
}

// parseEncryption reads the keys out of a configuration with the providers in either order. Its errors show no value.
func parseEncryption(data []byte) ([]encryptionKey, error) {
	var doc encryptionDocument
	if yaml.UnmarshalStrict(data, &doc) != nil || doc.Kind != "EncryptionConfiguration" {
		return nil, errors.New("not an EncryptionConfiguration as quorate writes it")
	}
	var docs []encryptionDoc
	for _, r := range doc.Resources {
		for _, p := range r.Providers {
			if p.Secretbox != nil {
				docs = append(docs, p.Secretbox.Keys...)
			}
		}
	}
	keys, err := decodeEncryption(docs)
	if err != nil {
		return nil, err
	}
	return keys, validateEncryption(keys)
}

func encodeEncryption(keys []encryptionKey) (docs []encryptionDoc) {
	for _, k := range keys {
		docs = append(docs, encryptionDoc{Name: k.name, Secret: base64.StdEncoding.EncodeToString(k.secret)})
	}
	return docs
}

func decodeEncryption(docs []encryptionDoc) (keys []encryptionKey, err error) {
	for i, d := range docs {
		secret, err := base64.StdEncoding.Strict().DecodeString(d.Secret)
		if err != nil {
			return nil, fmt.Errorf("encryptionKeys[%d].secret: not base64", i)
		}
		keys = append(keys, encryptionKey{name: d.Name, secret: secret})
	}
	return keys, nil
}

// encryptionName is what a key may be called; the apiserver stores the name before each value.
var encryptionName = pattern.Of(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func validateEncryption(keys []encryptionKey) error {
	if len(keys) == 0 {
		return errors.New("encryptionKeys: missing")
	}
	seen := map[string]bool{}
	for i, k := range keys {
		switch {
		case !encryptionName().MatchString(k.name):
			return fmt.Errorf("encryptionKeys[%d].name: found %q; lower-case letters, digits and - are allowed", i,
				k.name)
		case seen[k.name]:
			return fmt.Errorf("encryptionKeys[%d].name: %q is there twice", i, k.name)
		case len(k.secret) != encryptionKeyBytes:
			return fmt.Errorf("encryptionKeys[%d].secret: found %d bytes, %d are allowed", i, len(k.secret),
				encryptionKeyBytes)
		case bytes.Equal(k.secret, make([]byte, encryptionKeyBytes)):
			return fmt.Errorf("encryptionKeys[%d].secret: is all zero", i)
		}
		seen[k.name] = true
	}
	return nil
}
