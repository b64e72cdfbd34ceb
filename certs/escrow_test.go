package certs

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

const passphrase = "correct horse battery staple"

func TestAnEscrowGivesTheBundleBack(t *testing.T) {
	b := testBundle(t)
	sealed, err := b.Escrow(passphrase)
	if err != nil {
		t.Fatal(err)
	}
	want, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !Encrypted(sealed) || Encrypted(want) {
		t.Errorf("encrypted: the escrow %v, the plain form %v", Encrypted(sealed), Encrypted(want))
	}
	if bytes.Contains(sealed, []byte("PRIVATE KEY")) {
		t.Error("a key is readable in the escrow")
	}
	opened, err := OpenEscrow(sealed, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := opened.Encode(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another bundle came back: %v", err)
	}

	if _, err := OpenEscrow(sealed, passphrase+"r"); !errors.Is(err, ErrPassphrase) {
		t.Errorf("another passphrase: %v", err)
	}
	// Damage is found before anything is made of the content, and is not taken for a wrong passphrase.
	flipped := bytes.Clone(sealed)
	middle := len(flipped) * 2 / 3
	flipped[middle] = map[bool]byte{true: 'B', false: 'A'}[flipped[middle] == 'A']
	for name, data := range map[string][]byte{"cut off": sealed[:len(sealed)/2], "a byte changed": flipped,
		"empty": nil, "something else": []byte("hello")} {
		if got, err := OpenEscrow(data, passphrase); err == nil || errors.Is(err, ErrPassphrase) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestAShortPassphraseIsRefused(t *testing.T) {
	if got, err := testBundle(t).Escrow("elevenchars"); err == nil || got != nil ||
		!strings.Contains(err.Error(), "has 11 characters; at least 12 are needed") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestABundleIsProvedByUse(t *testing.T) {
	b := testBundle(t)
	if err := b.Prove(testCluster(), t0); err != nil {
		t.Error(err)
	}
	if err := b.Prove(testCluster(), t0.Add(11*365*24*time.Hour)); !errors.Is(err, ErrAuthorityExpired) {
		t.Errorf("after eleven years: %v", err)
	}
	if err := b.Prove(testCluster(), t0.Add(-25*time.Hour)); err == nil {
		t.Error("a bundle from the future is taken")
	}
	// A CA that may not issue the leaves' usages is found by use alone.
	for _, name := range Authorities() {
		swapped := *b
		swapped.authorities = map[Authority]authority{}
		for n, a := range b.authorities {
			swapped.authorities[n] = a
		}
		a := swapped.authorities[name]
		a.key = b.authorities[Authorities()[(indexOf(name)+1)%4]].key
		swapped.authorities[name] = a
		if err := swapped.Prove(testCluster(), t0); err == nil {
			t.Errorf("the %s CA with another's key is taken", name)
		}
	}
}

func indexOf(a Authority) int {
	for i, name := range Authorities() {
		if name == a {
			return i
		}
	}
	return -1
}

func TestFingerprintsAreTheBindings(t *testing.T) {
	b := testBundle(t)
	want, err := b.binding()
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Fingerprints()
	if err != nil || len(got) != 4 {
		t.Fatalf("%v, %v", got, err)
	}
	for _, f := range got {
		if f.Pin != want.Pins[f.Authority] {
			t.Errorf("%s: %s, the binding has %s", f.Authority, f.Pin, want.Pins[f.Authority])
		}
	}
}
