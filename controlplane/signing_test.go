package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"testing"
)

// testSigning asks for a kubelet's client certificate as a new node does; the administrator approves.
func (p controlPlane) testSigning(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:n",
			Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST",
		Bytes: der}))
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	code, body := ask(t, p.admin, http.MethodPost, p.base+path, fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"n"},
		"spec":{"request":%q,"signerName":"kubernetes.io/kube-apiserver-client-kubelet","usages":["digital signature","client auth"]}}`, request))
	if code != http.StatusCreated {
		t.Fatalf("create the request: %d %s", code, body)
	}
	var csr map[string]any
	if err := json.Unmarshal([]byte(body), &csr); err != nil {
		t.Fatal(err)
	}
	csr["status"] = map[string]any{"conditions": []map[string]string{{"type": "Approved", "status": "True",
		"reason": "Test"}}}
	approved, err := json.Marshal(csr)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := ask(t, p.admin, http.MethodPut, p.base+path+"/n/approval",
		string(approved)); code != http.StatusOK {
		t.Fatalf("approve the request: %d %s", code, body)
	}
	eventually(t, "the certificate", func(context.Context) error {
		var answer struct{ Status struct{ Certificate []byte } }
		if err := p.get(t, path+"/n", &answer); err != nil {
			return err
		}
		if block, _ := pem.Decode(answer.Status.Certificate); block == nil {
			return errors.New("not signed yet")
		}
		return nil
	})
}
