package addons

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/addons/plan"
)

// webhook registers a webhook for ConfigMaps, until the test ends: it returns once the apiserver calls it, and the test
// ends once it calls it no more; the apiserver hears of either by a watch. It admits what it has no answer to.
func (c *realCluster) webhook(t *testing.T, name string, answer func(*admissionv1.AdmissionRequest) string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe-of-" + name}}
	var probed atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		refusal := ""
		if review.Request.Name == probe.Name {
			probed.Store(true)
		} else {
			refusal = answer(review.Request)
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: refusal == "",
			Result: &metav1.Status{Message: refusal}}
		json.NewEncoder(w).Encode(review)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	none, fail, seconds := admission.SideEffectClassNone, admission.Fail, int32(30)
	config := &admission.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admission.ValidatingWebhook{{Name: name + ".example.com",
			ClientConfig: admission.WebhookClientConfig{URL: &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})},
			Rules: []admission.RuleWithOperations{{Operations: []admission.OperationType{admission.OperationAll},
				Rule: admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"configmaps"}}}},
			SideEffects: &none, FailurePolicy: &fail, TimeoutSeconds: &seconds,
			AdmissionReviewVersions: []string{"v1"}}}}
	if err := c.admin.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	called := func(want bool) func() error {
		return func() error {
			probed.Store(false)
			err := c.admin.Create(context.Background(), probe.DeepCopy(), client.DryRunAll)
			if err == nil && probed.Load() != want {
				err = fmt.Errorf("the webhook %s is called: %t", name, !want)
			}
			return err
		}
	}
	t.Cleanup(func() {
		if err := c.admin.Delete(context.Background(), config); err != nil {
			t.Error(err)
		}
		eventually(t, "the apiserver calls the webhook no more", time.Minute, called(false))
	})
	eventually(t, "the apiserver calls the webhook", time.Minute, called(true))
}

func refusingWebhook(t *testing.T, c *realCluster) {
	var refuses atomic.Bool
	refuses.Store(true)
	c.webhook(t, "refusing", func(r *admissionv1.AdmissionRequest) string {
		if refuses.Load() && r.Name == "refused" {
			return "not on a Monday"
		}
		return ""
	})
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		"refused.yaml": configMapYAML("default", "refused", "x"), "let.yaml": configMapYAML("default", "let", "x")})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	s := m.becomes(t, "one fails, the other is in place", func(s plan.Status) bool {
		return s.InPlace == 1 && len(s.Failing) == 1
	})
	if !strings.Contains(s.Failing[0].Reason, "not on a Monday") || s.Failing[0].Source != "refused.yaml" {
		t.Errorf("what fails is %+v", s.Failing)
	}
	_, at := c.requests(t, 0)
	time.Sleep(4 * time.Second)
	list, _ := c.requests(t, at)
	if writes, dry := writesOf(list); len(writes) > 0 || len(dry) > 3 {
		t.Errorf("in 4 s of back-off there were %d dry runs, and these writes: %v", len(dry), writes)
	}
	if got := c.events(t, "default", "AddonFailed"); len(got) == 0 || !strings.Contains(strings.Join(got, "\n"),
		"not on a Monday") {
		t.Errorf("the events are %q", got)
	}
	refuses.Store(false)
	m.becomes(t, "it is let in", allInPlace(2))
}

// madeMeanwhile has a person make an object after it was found missing, while the manager compares it.
func madeMeanwhile(t *testing.T, c *realCluster) {
	var made atomic.Bool
	person := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "meanwhile"},
		Data: map[string]string{"key": "a person's"}}
	c.webhook(t, "meanwhile", func(r *admissionv1.AdmissionRequest) string {
		if r.Name == person.Name && *r.DryRun && made.CompareAndSwap(false, true) {
			if err := c.admin.Create(t.Context(), person.DeepCopy()); err != nil {
				t.Error(err)
			}
		}
		return ""
	})
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		"a.yaml": configMapYAML("default", "meanwhile", "ours"), "b.yaml": configMapYAML("default", "beside-it", "x")})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "it is refused", func(s plan.Status) bool {
		return s.InPlace == 1 && len(s.Failing) == 1 &&
			strings.Contains(s.Failing[0].Reason, "not made by this manager")
	})
	got := c.configMap(t, "default", "meanwhile")
	if !made.Load() || got.Data["key"] != "a person's" || len(got.Labels) > 0 {
		t.Errorf("the person's object is %v %v", got.Labels, got.Data)
	}
}

const toolDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: %[1]s, singular: %[1]s, kind: %[2]s}
  versions:
    - {name: v1, served: true, storage: true,
       schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func lateDefinition(t *testing.T, c *realCluster) {
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		// The definition is in the set, under a name that sorts behind its object's.
		"z.yaml":    fmt.Sprintf(toolDefinition, "hammers", "Hammer"),
		"a.yaml":    "apiVersion: example.com/v1\nkind: Hammer\nmetadata: {namespace: default, name: a}\nweight: 3\n",
		"late.yaml": "apiVersion: example.com/v1\nkind: Saws\nmetadata: {namespace: default, name: late}\nteeth: 9\n",
		"cm.yaml":   configMapYAML("default", "beside", "x")})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	s := m.becomes(t, "all but one are in place", func(s plan.Status) bool {
		return s.InPlace == 3 &&
			len(s.Failing) == 1
	})
	if !strings.Contains(s.Failing[0].Reason, "CustomResourceDefinition may come later") {
		t.Errorf("what fails is %+v", s.Failing)
	}
	var late unstructured.Unstructured
	text := strings.NewReplacer("singular: sawses", "singular: saw").Replace(fmt.Sprintf(toolDefinition, "sawses",
		"Saws"))
	objects, err := decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	late = *objects[0]
	if err := c.admin.Create(t.Context(), &late); err != nil {
		t.Fatal(err)
	}
	m.becomes(t, "the late one is in place", allInPlace(4))
}
