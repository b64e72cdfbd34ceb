package certs

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// regexpSecret finds the one key of a configuration.
var regexpSecret = regexp.MustCompile(`secret: (\S+)`)

// providersOf are the providers of a configuration that kube-apiserver would take, each by its one key.
func providersOf(t *testing.T, config []byte) (names []string, keys []string) {
	t.Helper()
	var doc struct {
		APIVersion, Kind string
		Resources        []struct {
			Resources []string
			Providers []map[string]json.RawMessage
		}
	}
	if err := yaml.UnmarshalStrict(config, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.APIVersion != "apiserver.config.k8s.io/v1" || doc.Kind != "EncryptionConfiguration" ||
		len(doc.Resources) != 1 || !slices.Equal(doc.Resources[0].Resources, []string{"secrets"}) {
		t.Errorf("document %+v", doc)
	}
	for _, provider := range doc.Resources[0].Providers {
		for name, value := range provider {
			names = append(names, name)
			if name != "secretbox" {
				continue
			}
			var box struct {
				Keys []struct{ Name, Secret string }
			}
			if err := json.Unmarshal(value, &box); err != nil {
				t.Fatal(err)
			}
			for _, k := range box.Keys {
				keys = append(keys, k.Name)
			}
		}
	}
	return names, keys
}

func TestTheFirstProviderWritesAndEachReads(t *testing.T) {
	r := testRequest(t, rotated(t, testBundle(t), t0))
	mustEnsure(t, r)
	for _, tc := range []struct {
		encrypt    bool
		providers  []string
		writesWith string
	}{
		{true, []string{"secretbox", "identity"}, "g2"},
		{false, []string{"identity", "secretbox"}, ""},
	} {
		config, does, err := EncryptionConfig(r.Files, tc.encrypt)
		if err != nil {
			t.Fatal(err)
		}
		providers, keys := providersOf(t, config)
		if !slices.Equal(providers, tc.providers) || !slices.Equal(keys, []string{"g2", "g1"}) {
			t.Errorf("encrypt %t: providers %q, keys %q", tc.encrypt, providers, keys)
		}
		want := Encryption{Resources: []string{"secrets"}, WritesWith: tc.writesWith, ReadsWith: []string{"g2", "g1"}}
		if diff := cmp.Diff(want, does); diff != "" {
			t.Errorf("encrypt %t:\n%s", tc.encrypt, diff)
		}
	}
}

// Which of the providers writes is decided when an apiserver starts. So what is on the disk is the same either way, and
// a change of the configuration needs no bundle.
func TestTheDiskHoldsTheKeysWhateverTheConfigurationSays(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	before := contents(t, r.Files)[r.Files.EncryptionKeys()]
	r.Cluster.EncryptionAtRest = new(false)
	if report := mustEnsure(t, r); len(report.Changes) > 0 {
		t.Errorf("changes: %v", report.Changes)
	}
	if after := contents(t, r.Files)[r.Files.EncryptionKeys()]; after != before {
		t.Error("the file has changed")
	}
}

// An older quorate kept the apiserver's own configuration, with the provider first that wrote.
func TestTheKeysAreFoundBehindTheClearProvider(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	config, _, err := EncryptionConfig(r.Files, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.Files.EncryptionKeys(), config, 0o600); err != nil {
		t.Fatal(err)
	}
	without := r
	without.Bundle = nil
	mustEnsure(t, without)
	if _, does, err := EncryptionConfig(r.Files, true); err != nil || does.WritesWith != "g1" {
		t.Errorf("writes with %q, error %v", does.WritesWith, err)
	}
}

func TestDamagedEncryptionKeysAreRefusedAndMadeAnew(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	whole := contents(t, r.Files)[r.Files.EncryptionKeys()]
	secret := regexpSecret.FindStringSubmatch(whole)[1]
	for name, damaged := range map[string]string{
		"cut off":            whole[:len(whole)/3],
		"another document":   "kind: Config\n",
		"no keys":            strings.Replace(whole, "secretbox", "aescbc", 1),
		"a key cut off":      strings.Replace(whole, secret, secret[:8], 1),
		"a key of no base64": strings.Replace(whole, secret, "!"+secret[1:], 1),
		"a number for a key": strings.Replace(whole, secret, "5", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(r.Files.EncryptionKeys(), []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := EncryptionConfig(r.Files, true)
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), secret[:8]) {
				t.Errorf("the error shows the key: %v", err)
			}
			without := r
			without.Bundle = nil
			if _, err := ensure(without, fastDisk()); err == nil ||
				!strings.Contains(err.Error(), "encryption-config") {
				t.Errorf("without a bundle: %v", err)
			}
			os.Remove(r.Files.EncryptionKeys() + badSuffix)
			mustEnsure(t, r)
			if got := contents(t, r.Files)[r.Files.EncryptionKeys()]; got != whole {
				t.Errorf("with a bundle it is %q", got)
			}
		})
	}
}
