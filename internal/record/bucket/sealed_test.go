package bucket

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/record"
)

// testKey is a key whose bytes are all the same.
func testKey(b byte) string {
	return "base64key://" + base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

func openBundles(t *testing.T, s *Store, key string) *Bundles {
	t.Helper()
	b, err := OpenBundles(s, key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBundlesKeepWhatWasSealed(t *testing.T) {
	eachBucket(t, func(t *testing.T, url string) {
		ctx := t.Context()
		b := openBundles(t, openStore(t, url), testKey(1))
		if g, plain, err := b.Newest(ctx); g != 0 || plain != nil || err != nil {
			t.Fatalf("newest of none: %d, %q, %v", g, plain, err)
		}
		for g, plain := range map[uint64]string{1: "keys one", 2: "keys two"} {
			if got, won, err := b.Create(ctx, g, []byte(plain)); err != nil || !won || string(got) != plain {
				t.Fatalf("create: %q, won %v, %v", got, won, err)
			}
		}
		other := openBundles(t, openStore(t, url), testKey(1))
		if got, won, err := other.Create(ctx, 1, []byte("keys of another")); err != nil || won ||
			string(got) != "keys one" {
			t.Fatalf("second create: %q, won %v, %v: want the first one's", got, won, err)
		}
		if got, err := other.Read(ctx, 1); err != nil || string(got) != "keys one" {
			t.Fatalf("read: %q, %v", got, err)
		}
		if g, got, err := other.Newest(ctx); err != nil || g != 2 || string(got) != "keys two" {
			t.Fatalf("newest: %d, %q, %v", g, got, err)
		}
		sealed, err := other.store.ReadSealed(ctx, 2)
		if err != nil || bytes.Contains(sealed, []byte("keys")) {
			t.Fatalf("the record holds %q, %v", sealed, err)
		}
	})
}

func TestBundleDoesNotOpenWithAnotherKey(t *testing.T) {
	m := newMemory()
	s, ctx := m.store(), t.Context()
	if _, _, err := openBundles(t, s, testKey(1)).Create(ctx, 1, []byte("keys")); err != nil {
		t.Fatal(err)
	}
	b := openBundles(t, s, testKey(2))
	_, readErr := b.Read(ctx, 1)
	_, _, newestErr := b.Newest(ctx)
	_, won, createErr := b.Create(ctx, 1, []byte("keys"))
	if won {
		t.Error("won with a key that does not open what is there")
	}
	for _, err := range []error{readErr, newestErr, createErr} {
		if err == nil || !strings.Contains(err.Error(),
			"memory:bundle/1.sealed: the base64key key of the configuration (seal.key) does not open it") {
			t.Errorf("%v", err)
		}
		if !errors.Is(err, ErrSealKey) || errors.Is(err, record.ErrRecord) {
			t.Errorf("%v: want ErrSealKey, and not record.ErrRecord", err)
		}
		if strings.Contains(err.Error(), testKey(2)[len("base64key://"):]) {
			t.Errorf("the error holds the key: %v", err)
		}
	}
}

func TestBundleIsBoundToClusterAndGeneration(t *testing.T) {
	m := newMemory()
	s, ctx := m.store(), t.Context()
	b := openBundles(t, s, testKey(1))
	if _, _, err := b.Create(ctx, 1, []byte("old keys")); err != nil {
		t.Fatal(err)
	}
	m.put(record.SealedKey(2), string(m.objects[record.SealedKey(1)]))
	if got, err := b.Read(ctx, 2); err == nil ||
		!strings.Contains(err.Error(), "sealed for another cluster or generation") {
		t.Errorf("an old generation under a new number: %q, %v", got, err)
	}
	other := openBundles(t, &Store{driver: m, cluster: "c2"}, testKey(1))
	if got, err := other.Read(ctx, 1); err == nil ||
		!strings.Contains(err.Error(), "sealed for another cluster or generation") {
		t.Errorf("another cluster's: %q, %v", got, err)
	}
	m.put(record.SealedKey(1), "short")
	if got, err := b.Read(ctx, 1); err == nil {
		t.Errorf("damaged: %q", got)
	}
}

func TestBundleIsNotLargerThanTheKeyTakes(t *testing.T) {
	m := newMemory()
	b := openBundles(t, m.store(), testKey(1))
	if _, _, err := b.Create(t.Context(), 1, make([]byte, maxBundle)); err == nil || len(m.objects) != 0 {
		t.Fatalf("%v, %d objects", err, len(m.objects))
	}
	if _, err := b.Read(t.Context(), 1); err == nil ||
		!strings.Contains(err.Error(), "bundle/1.sealed: the object is not there") {
		t.Fatal(err)
	}
}

func TestSealKeyErrorsDoNotHoldTheKey(t *testing.T) {
	const secret = "c2VjcmV0c2VjcmV0"
	for url, want := range map[string]string{
		"":                                "no scheme",
		secret:                            "no scheme",
		"base64key:" + secret:             "no scheme",
		"base64key://":                    "want 32 bytes in base64",
		"base64key://" + secret:           "want 32 bytes in base64",
		"base64key://%zz" + secret:        "want 32 bytes in base64",
		"base64key://" + secret + "\x00":  "want 32 bytes in base64",
		"base64Key://" + secret:           "scheme is not known",
		secret + "://x":                   "scheme is not known",
		"awskms://" + secret:              "scheme is not known",
		"gcpkms://projects/p/locations/l": "names no Cloud KMS key",
		"gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1": "names no Cloud KMS key",
	} {
		_, err := OpenBundles(newMemory().store(), url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("OpenBundles(%q): %v: want %q and not the key", url, err, want)
		}
	}
	for _, url := range []string{testKey(1), "base64key://" +
		base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{255}, 32)),
		"gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"} {
		if _, err := OpenBundles(newMemory().store(), url); err != nil {
			t.Errorf("OpenBundles(%q): %v", url, err)
		}
	}
}

func TestErrorsSayWhoseFaultTheyAre(t *testing.T) {
	s, ctx := openStore(t, "gs://b?endpoint=http://127.0.0.1:1"), t.Context()
	_, viewErr := s.View(ctx)
	_, _, newestErr := openBundles(t, s, testKey(1)).Newest(ctx)
	_, _, createErr := s.CreateInception(ctx, record.Inception{UID: "u", Name: "c1"})
	for what, err := range map[string]error{"view": viewErr, "newest": newestErr, "create": createErr} {
		if !errors.Is(err, record.ErrRecord) || errors.Is(err, ErrSealKey) {
			t.Errorf("%s: %v: want record.ErrRecord, and not ErrSealKey", what, err)
		}
	}
}

// What an earlier version of this program has sealed, by another library, opens.
func TestABundleOfAnEarlierVersionOpens(t *testing.T) {
	sealed, err := base64.StdEncoding.DecodeString("0vgDCRaWtlHAnKqnb+FOxfPk0ZLK6ZlnEZ4zMySw7xPdMl+lq1jnGy2MtyS7" +
		"EQJnCsF7pFA9G05+bWB0nbpd8wfp5N4qNHEbKtE2/yxSaT2R1EdR")
	if err != nil {
		t.Fatal(err)
	}
	m := newMemory()
	m.put(record.SealedKey(1), string(sealed))
	got, err := openBundles(t, m.store(), testKey(1)).Read(t.Context(), 1)
	if err != nil || string(got) != "keys of a former version" {
		t.Errorf("%q, %v", got, err)
	}
}
