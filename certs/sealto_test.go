package certs

import (
	"bytes"
	"io"
	"testing"

	"filippo.io/age"
)

func TestWhatIsEncryptedToSomebodyOpensWithTheirKeyAlone(t *testing.T) {
	owner, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("a report "), 10_000)
	sealed, err := EncryptTo(owner.Recipient().String(), data)
	if err != nil || bytes.Contains(sealed, []byte("a report")) {
		t.Fatalf("%v, or it can be read", err)
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), owner)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := age.Decrypt(bytes.NewReader(sealed), other); err == nil {
		t.Error("another key opens it")
	}
	for _, key := range []string{"", "age1", "AGE-SECRET-KEY-1", owner.String(), "ssh-rsa AAAA",
		owner.Recipient().String() + "\n" + other.Recipient().String()} {
		if ParseRecipient(key) == nil {
			t.Errorf("took %.12q for a recipient", key)
		}
	}
}
