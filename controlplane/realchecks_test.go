package controlplane

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/certs"
)

func (p controlPlane) testAnonymous(t *testing.T) {
	nobody := p.in.verifiedClient()
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 200, "/healthz": 200, "/readyz?verbose": 200,
		"/api": 401, "/version": 401, "/livez/ping": 401, "/metrics": 401, "/openapi/v3": 401, "/api/v1/secrets": 401,
	} {
		if code, _ := ask(t, nobody, http.MethodGet, p.base+path, ""); code != want {
			t.Errorf("GET %s: %d, want %d", path, code, want)
		}
	}
	for _, port := range []int{controllerManagerPort, schedulerPort} {
		if code, _ := ask(t, nobody, http.MethodGet, loopbackURL("https", port, "/metrics"), ""); code != 403 &&
			code != 401 {
			t.Errorf("GET /metrics on port %d: %d, want 401 or 403", port, code)
		}
	}
}

func (p controlPlane) testTLS(t *testing.T) {
	for _, port := range []int{443, controllerManagerPort, schedulerPort} {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		for name, c := range map[string]*tls.Config{
			"TLS 1.1": {MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10},
			"TLS 1.2 with a CBC suite": {MaxVersion: tls.VersionTLS12,
				CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}},
		} {
			c.InsecureSkipVerify = true // the question is whether the server talks at all
			conn, err := tls.Dial("tcp", address, c)
			if err == nil {
				conn.Close()
				t.Errorf("%s accepts %s", address, name)
			}
		}
	}
}

// testExcludes: a name that the apiserver does not know is not excluded, and it says so.
func (p controlPlane) testExcludes(t *testing.T) {
	_, body := ask(t, p.admin, http.MethodGet, p.base+"/livez?verbose&exclude=etcd", "")
	t.Logf("%s", body)
	if !strings.Contains(body, "[+]etcd excluded") || strings.Contains(body, "cannot be excluded") {
		t.Errorf("/livez with the exclusions of the probe:\n%s", body)
	}
}

func (p controlPlane) testEndpoints(t *testing.T) {
	var e struct {
		Endpoints []struct{ Addresses []string }
		Ports     []struct{ Port int }
	}
	eventually(t, "endpoints", func(context.Context) error {
		return p.get(t, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", &e)
	})
	if len(e.Endpoints) != 1 || !slices.Equal(e.Endpoints[0].Addresses, []string{"10.240.0.12"}) || len(e.Ports) != 1 ||
		e.Ports[0].Port != 443 {
		t.Errorf("got %+v", e)
	}
}

func (p controlPlane) testLeases(t *testing.T) {
	lasts := int(p.in.Cluster.ElectionTimes().LeaseDuration.Seconds())
	for _, l := range Leases(p.in.Cluster) {
		eventually(t, l.Name, func(context.Context) error {
			var lease struct {
				Spec struct {
					HolderIdentity       string
					LeaseDurationSeconds int
				}
			}
			if err := p.get(t, "/apis/coordination.k8s.io/v1/namespaces/"+l.Namespace+"/leases/"+l.Name,
				&lease); err != nil {
				return err
			}
			host, _ := os.Hostname()
			if !strings.HasPrefix(lease.Spec.HolderIdentity, host+"_") || lease.Spec.LeaseDurationSeconds != lasts {
				return fmt.Errorf("the lease is %+v", lease.Spec)
			}
			return nil
		})
	}
}

func (p controlPlane) testEncryption(t *testing.T) {
	p.createSecret(t, "s")
	p.wantStored(t, "s", true)
}

// createSecret creates one that holds "plain words".
func (p controlPlane) createSecret(t *testing.T, name string) {
	t.Helper()
	code, body := ask(t, p.admin, http.MethodPost, p.base+"/api/v1/namespaces/default/secrets",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"`+name+`"},"stringData":{"k":"plain words"}}`)
	if code != http.StatusCreated {
		t.Fatalf("create secret %s: %d %s", name, code, body)
	}
}

// wantStored reads the bytes that etcd holds of a secret.
func (p controlPlane) wantStored(t *testing.T, name string, encrypted bool) {
	t.Helper()
	stored := p.stored(t, "/registry/secrets/default/"+name)
	if strings.HasPrefix(stored, "k8s:enc:secretbox:v1:g1:") != encrypted ||
		strings.Contains(stored, "plain words") == encrypted {
		t.Errorf("etcd holds secret %s as %.40q, want it encrypted: %t", name, stored, encrypted)
	}
}

// stored reads a key from etcd with the certificate that the apiserver itself uses.
func (p controlPlane) stored(t *testing.T, key string) string {
	pair, err := tls.LoadX509KeyPair(p.in.Files.Leaf(certs.APIServerEtcd), p.in.Files.Leaf(certs.APIServerEtcd))
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{localEtcd}, Logger: zap.NewNop(), DialTimeout: 5 * time.Second,
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}, // the test's own member
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	resp, err := c.Get(t.Context(), key)
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatalf("read %s: %v, %v", key, resp, err)
	}
	return string(resp.Kvs[0].Value)
}

func (p controlPlane) testAudit(t *testing.T) {
	log, err := os.ReadFile(filepath.Join(p.in.LogDir, "kube-apiserver-audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), `"resource":"secrets","namespace":"default","name":"s"`) {
		t.Error("the creation of the secret is not in it")
	}
	for _, not := range []string{"plain words", `"requestURI":"/readyz`, `"requestURI":"/livez`} {
		if strings.Contains(string(log), not) {
			t.Errorf("%s is in it", not)
		}
	}
}

// get decodes an object, read by the administrator.
func (p controlPlane) get(t *testing.T, path string, into any) error {
	code, body := ask(t, p.admin, http.MethodGet, p.base+path, "")
	if code != http.StatusOK {
		return fmt.Errorf("GET %s: %d %s", path, code, body)
	}
	return json.Unmarshal([]byte(body), into)
}

// ask makes one request.
func ask(t *testing.T, c *http.Client, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
