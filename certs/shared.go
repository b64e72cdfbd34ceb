package certs

import (
	"io/fs"

	"sigs.k8s.io/yaml"
)

// Permissions of what is written: a key is its owner's alone from the first byte on.
const (
	secretMode fs.FileMode = 0o600
	publicMode fs.FileMode = 0o644
	groupReads fs.FileMode = 0o040
)

// managed is one file whose content follows from the bundle alone. Nothing in it depends on the configuration, which
// may change while no bundle is at hand.
type managed struct {
	name string
	path string
	mode fs.FileMode
	// parse tells a file that holds something else than its kind, which is kept aside, from one that is out of date.
	parse func([]byte) error
	// make is called with a bundle only.
	make func(*Bundle) ([]byte, error)
	// volatile files are gone after each boot, and the replica serves without them until the bundle is at hand.
	volatile bool
}

// sharedFiles lists the files that follow from the bundle, in the order in which they must be written: trust before
// what is trusted, the keys that verify before the key that signs.
func sharedFiles(f Files) []managed {
	var out []managed
	for _, a := range Authorities() {
		trust := func(b *Bundle) ([]byte, error) {
			return encodeCertificates(b.authorities[a].trust()...), nil
		}
		out = append(out, managed{string(a) + "-ca", f.CA(a), publicMode, certificatesOnly, trust, false})
	}
	verifying := func(b *Bundle) ([]byte, error) { return encodePublicKeys(b.serviceAccount) }
	signing := func(b *Bundle) ([]byte, error) { return encodeKey(b.serviceAccount[0]) }
	signer := func(b *Bundle) ([]byte, error) {
		return encodeCertificates(b.authorities[Kubernetes].cert), nil
	}
	signerKey := func(b *Bundle) ([]byte, error) { return encodeKey(b.authorities[Kubernetes].key) }
	return append(out,
		managed{"service-account.pub", f.ServiceAccountPublicKeys(), publicMode, parsePublicKeys, verifying, false},
		managed{"service-account.key", f.ServiceAccountKey(), secretMode, keyOnly, signing, false},
		managed{"encryption-config", f.EncryptionKeys(), secretMode, encryptionOnly, encryptionKeyFile, false},
		managed{"kubernetes-ca-signer", f.CASigner(Kubernetes), publicMode, certificatesOnly, signer, true},
		managed{"kubernetes-ca-signer-key", f.CASignerKey(Kubernetes), secretMode, keyOnly, signerKey, true},
	)
}

func certificatesOnly(data []byte) error { _, err := parseCertificates(data); return err }

func keyOnly(data []byte) error { _, err := parseKey(data); return err }

func encryptionOnly(data []byte) error { _, err := parseEncryption(data); return err }

func yamlOnly(data []byte) error {
	var doc map[string]any
	return yaml.Unmarshal(data, &doc)
}
