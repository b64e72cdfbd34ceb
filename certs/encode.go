package certs

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// bundleFormat is raised when an older quorate would misread a newer bundle; strict decoding refuses every other
// change.
const bundleFormat = 1

// bundleDoc is the bundle as it is sealed. Its strings are secrets: never print it.
type bundleDoc struct {
	Format         int                        `json:"format"`
	ClusterUID     string                     `json:"clusterUID"`
	Generation     uint64                     `json:"generation"`
	Created        time.Time                  `json:"created"`
	Authorities    map[Authority]authorityDoc `json:"authorities"`
	ServiceAccount []string                   `json:"serviceAccountKeys"`
	Encryption     []encryptionDoc            `json:"encryptionKeys"`
}

type authorityDoc struct {
	Certificate string   `json:"certificate"`
	Key         string   `json:"key"`
	Former      []string `json:"former,omitempty"`
}

// Encode writes the bundle, secrets in the clear, for the record to seal. The same bundle gives the same bytes.
func (b *Bundle) Encode() ([]byte, error) {
	if err := b.validate(); err != nil {
		return nil, fmt.Errorf("encode bundle: %w", err)
	}
	doc := bundleDoc{Format: bundleFormat, ClusterUID: b.ClusterUID, Generation: b.Generation, Created: b.Created,
		Authorities: map[Authority]authorityDoc{}}
	for name, a := range b.authorities {
		key, err := encodeKey(a.key)
		if err != nil {
			return nil, fmt.Errorf("encode bundle: authorities.%s.key: %w", name, err)
		}
		d := authorityDoc{Certificate: string(encodeCertificates(a.cert)), Key: string(key)}
		for _, f := range a.former {
			d.Former = append(d.Former, string(encodeCertificates(f)))
		}
		doc.Authorities[name] = d
	}
	for i, k := range b.serviceAccount {
		key, err := encodeKey(k)
		if err != nil {
			return nil, fmt.Errorf("encode bundle: serviceAccountKeys[%d]: %w", i, err)
		}
		doc.ServiceAccount = append(doc.ServiceAccount, string(key))
	}
	doc.Encryption = encodeEncryption(b.encryption)
	return json.Marshal(doc, json.Deterministic(true))
}

// DecodeBundle reads what Encode wrote, strictly: an unknown, repeated or missing field is an error that names it, and
// so is every key that does not fit or is weak (validate). What depends on the time is Bundle.Check's: an expired CA
// must still be readable by whoever replaces it.
func DecodeBundle(data []byte) (*Bundle, error) {
	var doc bundleDoc
	if err := json.Unmarshal(data, &doc, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("decode bundle: %w", withoutValues(err))
	}
	if doc.Format != bundleFormat {
		return nil, fmt.Errorf("decode bundle: format: found %d, this quorate reads %d", doc.Format, bundleFormat)
	}
	b := &Bundle{ClusterUID: doc.ClusterUID, Generation: doc.Generation, Created: doc.Created,
		authorities: map[Authority]authority{}}
	for _, name := range slices.Sorted(maps.Keys(doc.Authorities)) {
		a, err := doc.Authorities[name].decode()
		if err != nil {
			return nil, fmt.Errorf("decode bundle: authorities.%s.%w", name, err)
		}
		b.authorities[name] = a
	}
	if err := doc.decodeKeys(b); err != nil {
		return nil, fmt.Errorf("decode bundle: %w", err)
	}
	if err := b.validate(); err != nil {
		return nil, fmt.Errorf("decode bundle: %w", err)
	}
	return b, nil
}

// DecodeGeneration is DecodeBundle for what stands under a number in the record. It refuses a bundle of another number:
// who reads the record goes by its order of generations.
func DecodeGeneration(generation uint64, data []byte) (*Bundle, error) {
	b, err := DecodeBundle(data)
	if err == nil && b.Generation != generation {
		err = fmt.Errorf("%s stands as generation %d in the record", b, generation)
	}
	if err != nil {
		return nil, fmt.Errorf("bundle generation %d: %w", generation, err)
	}
	return b, nil
}

// decode's errors begin with the field, for the caller to put the authority before it.
func (d authorityDoc) decode() (a authority, err error) {
	if a.cert, err = parseCertificate([]byte(d.Certificate)); err != nil {
		return a, fmt.Errorf("certificate: %w", err)
	}
	if a.key, err = parseKey([]byte(d.Key)); err != nil {
		return a, fmt.Errorf("key: %w", err)
	}
	for i, f := range d.Former {
		c, err := parseCertificate([]byte(f))
		if err != nil {
			return a, fmt.Errorf("former[%d]: %w", i, err)
		}
		a.former = append(a.former, c)
	}
	return a, nil
}

func (d bundleDoc) decodeKeys(b *Bundle) error {
	for i, s := range d.ServiceAccount {
		key, err := parseKey([]byte(s))
		if err != nil {
			return fmt.Errorf("serviceAccountKeys[%d]: %w", i, err)
		}
		b.serviceAccount = append(b.serviceAccount, key)
	}
	var err error
	b.encryption, err = decodeEncryption(d.Encryption)
	return err
}

// withoutValues keeps the place of a decoding error and drops the value, which may be a key.
func withoutValues(err error) error {
	if sem, ok := errors.AsType[*json.SemanticError](err); ok {
		field := strings.ReplaceAll(strings.TrimPrefix(string(sem.JSONPointer), "/"), "/", ".")
		if errors.Is(sem.Err, json.ErrUnknownName) {
			return fmt.Errorf("unknown field %q", field)
		}
		return fmt.Errorf("field %q: a JSON %s cannot be a %s", field, sem.JSONKind, sem.GoType)
	}
	if syn, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(syn.Err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("field %q: given twice", syn.JSONPointer.LastToken())
		}
		return fmt.Errorf("not whole JSON: damaged at byte %d", syn.ByteOffset)
	}
	return errors.New("not JSON")
}
