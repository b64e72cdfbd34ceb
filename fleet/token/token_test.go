package token

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// What a cluster does with tokens is tested on a real one (controlplane's TestRealControlPlane).

func TestATokenIsAsKubernetesWantsIt(t *testing.T) {
	pattern := regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`) // k8s.io/cluster-bootstrap's BootstrapTokenPattern
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	seen := map[string]bool{}
	for range 1000 {
		made, err := New(time.Hour, "", now)
		if err != nil || !pattern.MatchString(made.String()) || CheckID(made.ID) != nil {
			t.Fatalf("%q: %v", made, err)
		}
		if want := "2026-01-02T03:04:05Z"; made.Expires.Format(time.RFC3339) != want {
			t.Fatalf("it expires at %s, not %s", made.Expires, want)
		}
		seen[made.Secret] = true
	}
	if len(seen) < 1000 {
		t.Errorf("%d secrets of 1000 differ", len(seen))
	}
}

func TestALifetimeHasBounds(t *testing.T) {
	for lifetime, allowed := range map[time.Duration]bool{0: false, Shortest - 1: false, Shortest: true, Longest: true,
		Longest + 1: false} {
		if _, err := New(lifetime, "", time.Now()); (err == nil) != allowed {
			t.Errorf("%s: %v", lifetime, err)
		}
	}
}

func TestAnIDIsNoSecret(t *testing.T) {
	for _, wrong := range []string{"", "abc", "ABCDEF", "abcdef.0123456789abcdef", "../secrets"} {
		if err := CheckID(wrong); err == nil || !strings.Contains(err.Error(), "6 characters") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestAKubeconfigHasWhatAKubeletNeeds(t *testing.T) {
	text, err := Kubeconfig("prod", "https://203.0.113.7:443", &rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData: []byte("the authority")}}, Token{ID: "07401b", Secret: "f395accd246ae52d"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil || config.Host != "https://203.0.113.7:443" || config.BearerToken != "07401b.f395accd246ae52d" ||
		string(config.CAData) != "the authority" || config.CertData != nil {
		t.Errorf("%+v, %v", config, err)
	}
}

// Tokens of other groups are not of workers; the first to expire comes first, and one that never does before all.
func TestTokensOfWorkersAreListed(t *testing.T) {
	secret := func(id, groups, expires string) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretPrefix + id}, Type: secretType,
			Data: map[string][]byte{keyID: []byte(id), keySecret: []byte("f395accd246ae52d"), keyGroups: []byte(groups),
				keyExpires: []byte(expires)}}
	}
	list := corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-system/secrets" || r.FormValue("fieldSelector") != "type="+secretType {
			t.Errorf("asked is %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	list.Items = []corev1.Secret{secret("later0", "system:bootstrappers:x,"+group, "2026-01-03T00:00:00Z"),
		secret("sooner", group, "2026-01-02T00:00:00Z"), secret("others", "system:bootstrappers:x", ""),
		secret("never0", group, "")}
	found, err := client.List(t.Context())
	var ids []string
	for _, f := range found {
		if ids = append(ids, f.ID); f.Secret != "" {
			t.Errorf("the secret of %s is listed", f.ID)
		}
	}
	if got := strings.Join(ids, " "); err != nil || got != "never0 sooner later0" {
		t.Errorf("%s, %v", got, err)
	}
	list.Items = []corev1.Secret{secret("broken", group, "tomorrow")}
	if _, err := client.List(t.Context()); err == nil || !strings.Contains(err.Error(),
		`Secret kube-system/bootstrap-token-broken: expiration: found "tomorrow"`) {
		t.Errorf("a time that is none: %v", err)
	}
}
