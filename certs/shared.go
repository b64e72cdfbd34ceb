package certs

import (
	"encoding/base64"
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/internal/replica"
)

// Permissions of what is written: a key is its owner's alone from the first byte on.
const (
	secretMode fs.FileMode = 0o600
	publicMode fs.FileMode = 0o644
)

// managed is one file whose content follows from the bundle and the configuration.
type managed struct {
	name string
	path string
	mode fs.FileMode
	// parse tells a file that holds something else than its kind, which is kept aside, from one that is out of date.
	parse func([]byte) error
	// make is called with a bundle only.
	make func(*Bundle, *replica.Cluster) ([]byte, error)
	// volatile files are gone after each boot, and the replica serves without them until the bundle is at hand.
	volatile bool
}

// sharedFiles lists the files that follow from the bundle, in the order in which they must be written: trust before what
// is trusted, the keys that verify before the key that signs.
func sharedFiles(f Files) []managed {
	var out []managed
	for _, a := range Authorities() {
		trust := func(b *Bundle, _ *replica.Cluster) ([]byte, error) {
			return encodeCertificates(b.authorities[a].trust()...), nil
		}
		out = append(out, managed{string(a) + "-ca", f.CA(a), publicMode, certificatesOnly, trust, false})
	}
	verifying := func(b *Bundle, _ *replica.Cluster) ([]byte, error) { return encodePublicKeys(b.serviceAccount) }
	signing := func(b *Bundle, _ *replica.Cluster) ([]byte, error) { return encodeKey(b.serviceAccount[0]) }
	signer := func(b *Bundle, _ *replica.Cluster) ([]byte, error) {
		return encodeCertificates(b.authorities[Kubernetes].cert), nil
	}
	signerKey := func(b *Bundle, _ *replica.Cluster) ([]byte, error) { return encodeKey(b.authorities[Kubernetes].key) }
	return append(out,
		managed{"service-account.pub", f.ServiceAccountPublicKeys(), publicMode, parsePublicKeys, verifying, false},
		managed{"service-account.key", f.ServiceAccountKey(), secretMode, keyOnly, signing, false},
		managed{"encryption-config", f.EncryptionConfig(), secretMode, yamlOnly, encryptionConfig, false},
		managed{"kubernetes-ca-signer", f.CASigner(Kubernetes), publicMode, certificatesOnly, signer, true},
		managed{"kubernetes-ca-signer-key", f.CASignerKey(Kubernetes), secretMode, keyOnly, signerKey, true},
	)
}

func certificatesOnly(data []byte) error { _, err := parseCertificates(data); return err }

func keyOnly(data []byte) error { _, err := parseKey(data); return err }

func yamlOnly(data []byte) error {
	var doc map[string]any
	return yaml.Unmarshal(data, &doc)
}

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
)

// encryptionConfig encrypts secrets with secretbox (XSalsa20 and Poly1305). Of the providers that need no plug-in it is the
// one that Kubernetes' documentation calls strong: aescbc is open to padding oracles, and aesgcm's random 96-bit nonces
// allow 200 000 writes a key, then it must be rotated. The first provider encrypts, all decrypt, so both are always listed:
// encryption can be turned on and off, and what was written before stays readable.
func encryptionConfig(b *Bundle, c *replica.Cluster) ([]byte, error) {
	box := &encryptionKeys{}
	for _, k := range b.encryption {
		box.Keys = append(box.Keys, encryptionDoc{Name: k.name, Secret: base64.StdEncoding.EncodeToString(k.secret)})
	}
	providers := []encryptionProvider{{Secretbox: box}, {Identity: &struct{}{}}}
	if c.EncryptionAtRest != nil && !*c.EncryptionAtRest {
		providers[0], providers[1] = providers[1], providers[0]
	}
	out, err := yaml.Marshal(encryptionDocument{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration",
		Resources: []encryptionResource{{Resources: []string{"secrets"}, Providers: providers}}})
	if err != nil {
		return nil, fmt.Errorf("encryption config: %w", err)
	}
	return out, nil
}
