package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
)

// issuer is an issuer of tokens, as OpenID Connect has them.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
		reply(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
		return
	}
	point, err := i.key.PublicKey.Bytes() // 4, x and y
	if err != nil {
		panic(err)
	}
	reply(w, map[string]any{"keys": []any{map[string]any{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k",
		"x": encoded(point[1:33]), "y": encoded(point[33:]),
	}}})
}

// token is signed with the key, which need not be the issuer's.
func (i *issuer) token(t *testing.T, key *ecdsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	claims["iss"], claims["aud"], claims["exp"] = i.URL, "prod", time.Now().Add(time.Hour).Unix()
	header, _ := json.Marshal(map[string]string{"alg": "ES256", "kid": "k"})
	body, _ := json.Marshal(claims)
	signed := encoded(header) + "." + encoded(body)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + encoded(slices.Concat(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))))
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// authority is the server's certificate, as a document has it.
func authority(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// addAccess gives the configuration an issuer, a webhook that lets its user read pods, and one that never answers.
func (p *controlPlane) addAccess(t *testing.T) {
	p.issuer = newIssuer(t)
	p.in.Cluster.JWT = []replica.JWT{{
		Issuer: replica.JWTIssuer{
			URL: p.issuer.URL, CertificateAuthority: authority(p.issuer.Server), Audiences: []string{"prod"},
		},
		ClaimValidationRules: []replica.ClaimRule{{Expression: "claims.verified == true", Message: "not verified"}},
		ClaimMappings: replica.ClaimMappings{
			Username: replica.PrefixedClaim{Claim: "sub", Prefix: new("example:")},
			Groups:   replica.PrefixedClaim{Expression: "claims.groups"},
			Extra:    []replica.ExtraClaim{{Key: "example.com/department", ValueExpression: "claims.department"}},
		},
		UserValidationRules: []replica.UserRule{{Expression: "!user.username.endsWith('root')",
			Message: "not that one"}},
	}}
	webhook := httptest.NewTLSServer(http.HandlerFunc(review))
	t.Cleanup(webhook.Close)
	silent := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // or the server would not see who asks go away
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	p.in.Cluster.Authorization.Webhooks = []replica.Webhook{
		{Name: "pods", Server: webhook.URL, CertificateAuthority: authority(webhook), FailurePolicy: "NoOpinion"},
		{Name: "silent", Server: silent.URL, CertificateAuthority: authority(silent), FailurePolicy: "Deny",
			Timeout:         replica.Duration(time.Second),
			MatchConditions: []replica.MatchCondition{{Expression: "request.user != 'nobody'"}}},
	}
	p.in.Cluster.SetDefaults()
}

// review lets one user list pods, and has no opinion about anything else.
func review(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Spec struct {
			User               string
			ResourceAttributes struct{ Verb, Resource string }
		}
	}
	json.NewDecoder(r.Body).Decode(&asked)
	what := asked.Spec.ResourceAttributes
	allowed := asked.Spec.User == "example:alice" && what.Verb == "list" && what.Resource == "pods"
	reply(w, map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"status": map[string]any{"allowed": allowed}})
}

// as asks with a token in place of a certificate.
func (p controlPlane) as(t *testing.T, token, method, path, body string) (int, string) {
	t.Helper()
	return ask(t, &http.Client{Transport: bearer{token, p.in.verifiedClient().Transport}}, method, p.base+path, body)
}

type bearer struct {
	token string
	http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

const whoAmI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

func (p controlPlane) testIssuer(t *testing.T) {
	claims := func(more map[string]any) map[string]any {
		all := map[string]any{"sub": "alice", "verified": true, "groups": []string{"dev"}, "department": "r&d"}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	review := `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	alice := p.issuer.token(t, p.issuer.key, claims(nil))
	var body string
	eventually(t, "the issuer's keys", func(context.Context) error {
		var code int
		if code, body = p.as(t, alice, http.MethodPost, whoAmI, review); code != http.StatusCreated {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	for _, part := range []string{`"username":"example:alice"`, `"dev"`, `"example.com/department":["r\u0026d"]`} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"another's key":       p.issuer.token(t, other, claims(nil)),
		"a claim that is not": p.issuer.token(t, p.issuer.key, claims(map[string]any{"verified": false})),
		"a user that is not":  p.issuer.token(t, p.issuer.key, claims(map[string]any{"sub": "root"})),
	} {
		if code, body := p.as(t, token, http.MethodPost, whoAmI, review); code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

// testWebhooks: the first of them allows more, the second denies what nobody else allowed, since it is silent; what
// Node and RBAC allow is not asked of them.
func (p controlPlane) testWebhooks(t *testing.T) {
	claims := map[string]any{"sub": "alice", "verified": true, "groups": []string{}, "department": ""}
	token := p.issuer.token(t, p.issuer.key, claims)
	if code, body := p.as(t, token, http.MethodGet, "/api/v1/namespaces/default/pods", ""); code != http.StatusOK {
		t.Errorf("what the webhook allows: %d %s", code, body)
	}
	begun := time.Now()
	if code, body := p.as(t, token, http.MethodGet, "/api/v1/namespaces/default/secrets", ""); code == http.StatusOK {
		t.Errorf("what nobody allows: %d %s", code, body)
	}
	if took := time.Since(begun); took < 900*time.Millisecond {
		t.Errorf("the silent webhook was not asked: %s", took)
	}
	begun = time.Now()
	kubelet := clientOf(t, p.in.Files.Kubeconfig(certs.Kubelet))
	node := p.base + "/api/v1/nodes/" + p.in.Identity.Name
	if code, body := ask(t, kubelet, http.MethodGet, node, ""); code != http.StatusNotFound {
		t.Errorf("the kubelet's own node: %d %s", code, body)
	}
	if took := time.Since(begun); took > 900*time.Millisecond {
		t.Errorf("a silent webhook holds up what Node allows: %s", took)
	}
}

// clientOf is the client of a process of the replica's.
func clientOf(t *testing.T, kubeconfig string) *http.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
