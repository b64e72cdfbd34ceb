package controlplane

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/supervisor"
)

// serve is a component that answers as the handler does, and an Input whose authority has signed its certificate.
func serve(t *testing.T, answer http.HandlerFunc) (*httptest.Server, Input) {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	in := Input{Files: certs.Files{Dir: t.TempDir()}}
	writeCA(t, in, s.Certificate())
	return s, in
}

func writeCA(t *testing.T, in Input, c *x509.Certificate) {
	t.Helper()
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	if err := os.WriteFile(in.Files.CA(certs.Kubernetes), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProbeAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		want   string // part of the error; empty: none
	}{
		{"well", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) }, ""},
		{"checks that fail are named, not those that pass", func(w http.ResponseWriter, _ *http.Request) {
			body := strings.Repeat("[+]poststarthook/x ok\n", 40) +
				"[-]etcd failed: reason withheld\n[-]shutdown failed: reason withheld\nreadyz check failed"
			http.Error(w, body, http.StatusInternalServerError)
		}, "500 Internal Server Error: etcd failed: reason withheld, shutdown failed: reason withheld"},
		{"another answer", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "forbidden",
				http.StatusForbidden)
		}, "403 Forbidden: forbidden"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		}, "the answer is a redirect"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, in := serve(t, tc.answer)
			err := get(in.verifiedClient(), s.URL+"/readyz")(t.Context())
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestProbeTrustsTheFileAsItIsNow: after a rotation the same probe verifies with the new authority.
func TestProbeTrustsTheFileAsItIsNow(t *testing.T) {
	s, in := serve(t, func(http.ResponseWriter, *http.Request) {})
	right, err := os.ReadFile(in.Files.CA(certs.Kubernetes))
	if err != nil {
		t.Fatal(err)
	}
	check := get(in.verifiedClient(), s.URL)
	for _, step := range []struct {
		name string
		file []byte
		want string
	}{
		{"no certificate", []byte("nothing"), "no certificate in it"},
		{"the right one", right, ""},
	} {
		if err := os.WriteFile(in.Files.CA(certs.Kubernetes), step.file, 0o600); err != nil {
			t.Fatal(err)
		}
		err := check(t.Context())
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s: got %v, want %q", step.name, err, step.want)
		}
	}
}

// TestProbeRefusesAStranger: whoever holds the port with a certificate of another authority is not the component.
func TestProbeRefusesAStranger(t *testing.T) {
	s, in := serve(t, func(http.ResponseWriter, *http.Request) {})
	writeCA(t, in, selfSigned(t))
	var unknown x509.UnknownAuthorityError
	if err := get(in.verifiedClient(), s.URL)(t.Context()); !errors.As(err, &unknown) {
		t.Errorf("got %v, want an unknown authority", err)
	}
}

// selfSigned is another authority.
func selfSigned(t *testing.T) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(newPair(t).certificate))
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestProbeEndsWithItsContext: a component that accepts and never answers, stopped by a signal for one.
func TestProbeEndsWithItsContext(t *testing.T) {
	s, in := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	late := errors.New("no answer in 50ms")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
	defer cancel()
	if err := get(in.verifiedClient(), s.URL)(ctx); !errors.Is(err, late) {
		t.Errorf("got %v, want %v", err, late)
	}
}

// TestProbeURLs: a probe that asks at the wrong place would restart a component that is well.
func TestProbeURLs(t *testing.T) {
	specs, _, err := Components(representative())
	if err != nil {
		t.Fatal(err)
	}
	// A check whose context is done asks nobody, and says whom it would have asked.
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("not asked"))
	want := map[string][3]string{
		"kube-apiserver": {"https://127.0.0.1:443/livez?exclude=etcd",
			"https://127.0.0.1:443/livez?exclude=etcd", "https://127.0.0.1:443/readyz"},
		"kube-scheduler": {"https://127.0.0.1:10259/healthz", "https://127.0.0.1:10259/healthz",
			"https://127.0.0.1:10259/readyz"},
		"kube-controller-manager":  {"https://127.0.0.1:10257/healthz", "https://127.0.0.1:10257/healthz", ""},
		"cluster-autoscaler":       {"http://127.0.0.1:8085/health-check", "http://127.0.0.1:8085/health-check", ""},
		"addons":                   {"http://local/alive", "http://local/alive", ""},
		"cloud-controller-manager": {"https://127.0.0.1:10258/healthz", "https://127.0.0.1:10258/healthz", ""},
	}
	if len(specs) != len(want) {
		t.Fatalf("%d components, want %d", len(specs), len(want))
	}
	for _, s := range specs {
		var got [3]string
		for i, c := range []check{checkOf(s.Start), checkOf(s.Live), checkOf(s.Ready)} {
			if c != nil {
				got[i] = strings.TrimSuffix(strings.TrimPrefix(c(ctx).Error(), "get "), ": not asked")
			}
		}
		if got != want[s.Name] {
			t.Errorf("%s is asked at %q, want %q", s.Name, got, want[s.Name])
		}
	}
}

func checkOf(p *supervisor.Probe) check {
	if p == nil {
		return nil
	}
	return p.Check
}
