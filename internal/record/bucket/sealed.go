package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/record"
)

// CreateSealed writes bundle/<generation>.sealed; its contract is that of the Create methods. Sealed bytes never
// repeat.
func (s *Store) CreateSealed(ctx context.Context, generation uint64, sealed []byte) (got []byte, won bool, err error) {
	if generation == 0 || len(sealed) == 0 {
		return nil, false, fmt.Errorf("create %s: generations start at 1 and are not empty",
			s.driver.where(record.SealedKey(generation)))
	}
	return s.createBytes(ctx, record.SealedKey(generation), sealed)
}

// ReadSealed reads bundle/<generation>.sealed. View.Bundle says which generations can be there.
func (s *Store) ReadSealed(ctx context.Context, generation uint64) ([]byte, error) {
	key := record.SealedKey(generation)
	data, err := s.driver.read(ctx, key)
	if err != nil {
		return nil, record.AtFault(fmt.Errorf("read %s: %w", s.driver.where(key), err))
	}
	return data, nil
}

// Bundles keeps the generations of the bundle, each sealed with the cluster's key and bound to the cluster and its
// number: a sealed bundle that somebody copied from another cluster, or under another number, does not open. Its
// methods may be called concurrently.
type Bundles struct {
	store *Store
	key   sealKey
}

// maxBundle is what Cloud KMS encrypts in one call; one limit for every key, so that a test finds what production
// would.
const maxBundle = 64 << 10

// OpenBundles takes the key by its URL: gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K, or base64key://KEY
// with 32 bytes for one machine and tests. Cloud KMS is reached by the store's client. It asks nobody. No error of this
// package holds a base64key's key.
func OpenBundles(store *Store, keyURL string) (*Bundles, error) {
	key, err := parseSealKey(keyURL, store.client)
	if err != nil {
		return nil, fmt.Errorf("open seal key: %w", err)
	}
	return &Bundles{store: store, key: key}, nil
}

// Create seals plaintext as the given generation if that is absent, and returns what the record holds of that
// generation, opened: the caller's or another's. The contract is that of the Create methods of Store.
func (b *Bundles) Create(ctx context.Context, generation uint64, plaintext []byte) (got []byte, won bool, err error) {
	bound := append(b.binding(generation), plaintext...)
	if len(bound) > maxBundle {
		return nil, false, fmt.Errorf("seal bundle generation %d: %d bytes: the key takes at most %d", generation,
			len(bound), maxBundle)
	}
	sealed, err := b.key.seal(ctx, bound)
	if err != nil {
		return nil, false, fmt.Errorf("seal bundle generation %d with the %s key: %w", generation, b.key.scheme, err)
	}
	stored, won, err := b.store.CreateSealed(ctx, generation, sealed)
	if err != nil {
		return nil, false, err
	}
	got, err = b.unseal(ctx, generation, stored)
	return got, won && err == nil, err
}

// Read opens one generation.
func (b *Bundles) Read(ctx context.Context, generation uint64) ([]byte, error) {
	sealed, err := b.store.ReadSealed(ctx, generation)
	if err != nil {
		return nil, err
	}
	return b.unseal(ctx, generation, sealed)
}

// Generations lists the generations that the record holds, oldest first. Nothing is opened.
func (b *Bundles) Generations(ctx context.Context) (out []uint64, err error) {
	entries, err := b.store.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list bundles: %w", err)
	}
	for _, e := range entries {
		if k := record.ParseKey(e.key); k.Kind == record.SealedObject {
			out = append(out, k.Number)
		}
	}
	slices.Sort(out) // a listing has 10 before 2
	return out, nil
}

// Newest opens the newest generation. Generation 0 without an error: the record has none.
func (b *Bundles) Newest(ctx context.Context) (generation uint64, plaintext []byte, err error) {
	all, err := b.Generations(ctx)
	if err != nil || len(all) == 0 {
		return 0, nil, err
	}
	generation = all[len(all)-1]
	plaintext, err = b.Read(ctx, generation)
	return generation, plaintext, err
}

// unseal opens sealed bytes and checks that they are of this cluster and generation.
func (b *Bundles) unseal(ctx context.Context, generation uint64, sealed []byte) ([]byte, error) {
	object := b.store.driver.where(record.SealedKey(generation))
	bound, err := b.key.open(ctx, sealed)
	switch {
	case errors.Is(err, ErrSealKey) && b.key.scheme == schemeLocal: // it has nothing more to say
		return nil, marked{fmt.Errorf("open %s: the %s key of the configuration (seal.key) does not open it", object,
			b.key.scheme), ErrSealKey}
	case errors.Is(err, ErrSealKey):
		return nil, fmt.Errorf("open %s: the %s key of the configuration (seal.key) does not open it: %w", object,
			b.key.scheme, err)
	case err != nil:
		return nil, fmt.Errorf("open %s: the %s key of the configuration (seal.key) cannot be asked: %w", object,
			b.key.scheme, err)
	}
	plaintext, ok := bytes.CutPrefix(bound, b.binding(generation))
	if !ok {
		return nil, record.AtFault(fmt.Errorf("open %s: it was sealed for another cluster or generation", object))
	}
	return plaintext, nil
}

// binding is what stands before the plaintext inside the seal.
func (b *Bundles) binding(generation uint64) []byte {
	return fmt.Appendf(nil, "quorate bundle %s %d\n", b.store.cluster, generation)
}
