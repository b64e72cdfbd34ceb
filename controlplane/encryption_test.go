package controlplane

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

// TestEncryptionIsSwitched starts the real apiserver with encryption on, off, and on again. Each reads what those
// before it wrote, and etcd's bytes show how each writes.
func TestEncryptionIsSwitched(t *testing.T) {
	withRealPrograms(t, encryptionIsSwitched, "etcd", replica.APIServer)
}

func encryptionIsSwitched(t *testing.T) {
	p := controlPlane{in: realInput(t), base: "https://127.0.0.1:443"}
	addAddresses(t, p.in.Identity.Addresses)
	p.enter(t)
	startEtcd(t, p.in)
	var running *process
	for i, step := range []struct {
		name    string
		encrypt bool
	}{{"first", true}, {"second", false}, {"third", true}} {
		if i > 0 {
			running.kill()
		}
		running = startProcess(t, p.specs(t, step.encrypt)[0])
		p.createSecret(t, step.name)
		p.wantStored(t, step.name, step.encrypt)
		p.wantSecrets(t, i+1)
	}
	// What the runbook says: each secret is written once more, as it is.
	p.rewriteSecrets(t)
	for _, name := range []string{"first", "second", "third"} {
		p.wantStored(t, name, true)
	}
}

// wantSecrets reads them one by one and as a list.
func (p controlPlane) wantSecrets(t *testing.T, n int) {
	t.Helper()
	secrets := p.secrets(t)
	if len(secrets) != n {
		t.Errorf("%d secrets, want %d", len(secrets), n)
	}
	for _, s := range secrets {
		var got struct{ Data map[string][]byte }
		err := p.get(t, secretsPath+s.name, &got)
		if err != nil || string(got.Data["k"]) != "plain words" {
			t.Errorf("secret %s holds %q: %v", s.name, got.Data["k"], err)
		}
	}
}

// rewriteSecrets replaces each secret by itself, as `kubectl replace` does.
func (p controlPlane) rewriteSecrets(t *testing.T) {
	t.Helper()
	for _, s := range p.secrets(t) {
		code, body := ask(t, p.admin, http.MethodPut, p.base+secretsPath+s.name, string(s.document))
		if code != http.StatusOK {
			t.Errorf("replace secret %s: %d %s", s.name, code, body)
		}
	}
}

// secretsPath is where the secrets of the tests are.
const secretsPath = "/api/v1/namespaces/default/secrets/"

type secret struct {
	name     string
	document json.RawMessage
}

func (p controlPlane) secrets(t *testing.T) (all []secret) {
	t.Helper()
	var list struct{ Items []json.RawMessage }
	if err := p.get(t, "/api/v1/secrets", &list); err != nil {
		t.Error(err)
	}
	for _, item := range list.Items {
		var s struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(item, &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, secret{s.Metadata.Name, item})
	}
	return all
}
