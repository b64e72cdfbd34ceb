package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"

	"github.com/quorate/quorate/fleet/token"
)

// testWorkerJoins joins as a kubelet does, with the code that a kubelet has for it.
func (p controlPlane) testWorkerJoins(t *testing.T) {
	ctx := t.Context()
	tokens, err := token.NewClient(p.adminConfig)
	if err != nil {
		t.Fatal(err)
	}
	first, err := token.New(time.Hour, "a test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.Create(ctx, first); err != nil {
		t.Fatal(err)
	}
	listed, err := tokens.List(ctx)
	if err != nil || len(listed) != 1 || listed[0].ID != first.ID || listed[0].Secret != "" ||
		!listed[0].Expires.Equal(first.Expires) || listed[0].Description != "a test" {
		t.Errorf("listed are %+v (%v), made was %+v", listed, err, first)
	}

	bootstrap := p.bootstrapConfig(t, first)
	guest := clients(t, bootstrap)
	awaitKnown(t, guest, first)
	certificate, key := certify(t, bootstrap, "system:node:worker-1")
	kubelet := rest.AnonymousClientConfig(bootstrap)
	kubelet.CertData, kubelet.KeyData = certificate, key
	worker := clients(t, kubelet)
	if _, err := worker.CoreV1().Nodes().Create(ctx, node("worker-1"), metav1.CreateOptions{}); err != nil {
		t.Errorf("the worker registers: %v", err)
	}
	if _, err := worker.CoreV1().Nodes().Create(ctx, node("worker-2"),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the worker registers another: %v", err)
	}
	// Renewed with the certificate itself, once the token has gone.
	if err := tokens.Delete(ctx, first.ID); err != nil {
		t.Fatal(err)
	}
	certify(t, kubelet, "system:node:worker-1")

	awaitRefused(t, guest, "a token that was deleted is refused")
	if err := tokens.Delete(ctx, first.ID); !errors.Is(err, token.ErrNoToken) {
		t.Errorf("deleted twice: %v", err)
	}
}

// testTokenMayDoNothingElse: a token is a way to a certificate, for a while.
func (p controlPlane) testTokenMayDoNothingElse(t *testing.T) {
	ctx := t.Context()
	tokens, err := token.NewClient(p.adminConfig)
	if err != nil {
		t.Fatal(err)
	}
	short, err := token.New(time.Minute, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	short.Expires = time.Now().Add(15 * time.Second)
	if err := tokens.Create(ctx, short); err != nil {
		t.Fatal(err)
	}
	bootstrap := p.bootstrapConfig(t, short)
	guest := clients(t, bootstrap)
	awaitKnown(t, guest, short)
	if _, err := guest.CoreV1().Nodes().Create(ctx, node("worker-3"), metav1.CreateOptions{}); !refused(err) {
		t.Errorf("a token registers a node: %v", err)
	}
	if _, err := guest.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{}); !refused(err) {
		t.Errorf("a token reads secrets: %v", err)
	}
	awaitRefused(t, guest, "it has expired")
	eventually(t, "it is deleted", func(ctx context.Context) error {
		if left, err := tokens.List(ctx); err != nil || len(left) > 0 {
			return fmt.Errorf("%d are left (%w)", len(left), err)
		}
		return nil
	})
}

// refused: neither role nor webhook lets it. The webhook of these tests says so by not answering.
func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInternalError(err) }

// awaitKnown waits until the apiserver knows a new token, by who it says that its bearer is.
func awaitKnown(t *testing.T, guest *kubernetes.Clientset, of token.Token) {
	t.Helper()
	eventually(t, "the token is known", func(ctx context.Context) error {
		is, err := guest.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
			metav1.CreateOptions{})
		if err != nil || is.Status.UserInfo.Username != "system:bootstrap:"+of.ID {
			return fmt.Errorf("it is of %+v (%w)", is, err)
		}
		return nil
	})
}

func awaitRefused(t *testing.T, guest *kubernetes.Clientset, what string) {
	t.Helper()
	eventually(t, what, func(ctx context.Context) error {
		_, err := guest.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
			metav1.CreateOptions{})
		if !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func clients(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bootstrapConfig is what a kubelet reads of its --bootstrap-kubeconfig.
func (p controlPlane) bootstrapConfig(t *testing.T, of token.Token) *rest.Config {
	t.Helper()
	text, err := token.Kubeconfig("test", p.base, p.adminConfig, of)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// certify asks for a kubelet's client certificate, and returns it with its key when it is approved and signed.
func certify(t *testing.T, config *rest.Config, name string) (certificate, key []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name,
		Organization: []string{"system:nodes"}}}, private)
	if err != nil {
		t.Fatal(err)
	}
	c := clients(t, config)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	request, uid, err := csr.RequestCertificateWithContext(ctx, c, text,
		"", certificatesv1.KubeAPIServerClientKubeletSignerName, nil,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, private)
	if err != nil {
		t.Fatalf("ask for a certificate: %v", err)
	}
	if certificate, err = csr.WaitForCertificate(ctx, c, request, uid); err != nil {
		t.Fatalf("wait for the certificate: %v", err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		t.Fatal(err)
	}
	return certificate, key
}
