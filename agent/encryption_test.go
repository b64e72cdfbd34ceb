package agent

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

// encryptionFile is what the apiserver is started with.
func encryptionFile(t *testing.T, c *components) string {
	t.Helper()
	for _, arg := range c.started[replica.APIServer].spec.Args {
		if path, ok := strings.CutPrefix(arg, "--encryption-provider-config="); ok {
			config, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return string(config)
		}
	}
	t.Error("the apiserver is started without a file: it cannot read what is encrypted")
	return ""
}

// startedAgain is an agent on a VM whose document says this of encryption. It has started its control plane, with no
// bundle but what is on the disk.
func startedAgain(t *testing.T, v *vm, encryptionAtRest string) (*Agent, *components) {
	t.Helper()
	v.metadata.attributes[ClusterAttribute] = v.document + "encryptionAtRest: " + encryptionAtRest + "\n"
	a, in := v.identified()
	if _, err := os.Stat(in.files.EncryptionKeys()); err != nil {
		v.certify(a, in, v.self, "uid")
	}
	m := membershipOf(a, in)
	a.openCertificates(in, m)
	out, err := a.certify(t.Context(), recorded{identified: in, membership: m})
	if err != nil {
		t.Fatal(err)
	}
	c := newFitting(t, a, out).components()
	c.fit(t.Context())
	return a, c
}

// Each start of the agent carries out what the document says, also while the record cannot be read. The status says it.
func TestEncryptionIsSwitchedByAStartOfTheAgent(t *testing.T) {
	v := newVM(t)
	v.bundles.err = errors.New("the record is away")
	for _, tc := range []struct {
		document, writesWith string
	}{{"false", ""}, {"true", "g1"}, {"false", ""}, {"true", "g1"}} {
		a, c := startedAgain(t, v, tc.document)
		config := encryptionFile(t, c)
		box, clear := strings.Index(config, "secretbox:"), strings.Index(config, "identity:")
		if box < 0 || clear < 0 {
			t.Errorf("the apiserver cannot read what others write: secretbox at %d, identity at %d", box, clear)
		}
		if encrypts := box < clear; encrypts != (tc.writesWith != "") {
			t.Errorf("encryptionAtRest %s: the apiserver encrypts: %t", tc.document, encrypts)
		}
		does := a.status(t.Context()).Encryption
		if does == nil || does.WritesWith != tc.writesWith || !slices.Equal(does.ReadsWith, []string{"g1"}) {
			t.Errorf("encryptionAtRest %s: the status says %+v", tc.document, does)
		}
	}
}

// What the disk holds later is not what the running apiserver has read, nor what it reads after a crash.
func TestTheStatusSaysWhatTheApiserverWasStartedWith(t *testing.T) {
	v := newVM(t)
	a, _ := v.identified()
	if s := a.status(t.Context()); s.Encryption != nil {
		t.Errorf("before the apiserver is started: %+v", s.Encryption)
	}
	a, c := startedAgain(t, v, "true")
	before := encryptionFile(t, c)
	if err := os.Remove(c.input().Files.EncryptionKeys()); err != nil {
		t.Fatal(err)
	}
	a.cluster.EncryptionAtRest = new(false)
	c.fit(t.Context())
	if encryptionFile(t, c) != before {
		t.Error("the file of a running apiserver has changed")
	}
	if s := a.status(t.Context()); s.Encryption == nil || s.Encryption.WritesWith != "g1" {
		t.Errorf("the status says %+v", s.Encryption)
	}
}
