package examples_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/addons/examples"
	"github.com/quorate/quorate/internal/replica"
)

// cluster is a document that differs from every default that the manifests are filled with.
func cluster(t *testing.T, names ...string) *replica.Cluster {
	t.Helper()
	c := &replica.Cluster{APIVersion: replica.APIVersion, Kind: replica.Kind, Name: "prod",
		Record:   replica.Record{URL: "gs://prod-record"},
		Seal:     replica.Seal{Key: "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"},
		Endpoint: replica.Endpoint{ExternalIP: "203.0.113.10", InternalIP: "10.240.0.100", Port: 6443},
		Network: replica.Network{ServiceCIDRs: []string{"10.32.4.0/24"}, PodCIDR: "10.200.0.0/16",
			DNSDomain: "prod.example"},
		Addons: replica.Addons{Examples: names}}
	c.SetDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheManifestsSayWhatTheDocumentSays(t *testing.T) {
	set := string(examples.Set(cluster(t, replica.AddonExamples...)))
	for _, want := range []string{
		"kubernetes prod.example in-addr.arpa ip6.arpa {", "clusterIP: 10.32.4.10\n", "clusterCIDR: 10.200.0.0/16\n",
		`{name: KUBERNETES_SERVICE_HOST, value: "10.240.0.100"}`, `{name: KUBERNETES_SERVICE_PORT, value: "6443"}`,
	} {
		if !strings.Contains(set, want) {
			t.Errorf("none of the manifests has %q", want)
		}
	}
	if strings.Contains(set, "{{") || strings.Contains(set, "<no value>") {
		t.Error("a place was not filled")
	}
	c := cluster(t, replica.KubeProxy)
	c.Endpoint.InternalIP = ""
	if text := string(examples.Set(c)); !strings.Contains(text, `value: "203.0.113.10"`) ||
		strings.Contains(text, "coredns") {
		t.Errorf("kube-proxy alone, without an internal address: %s", text)
	}
}

// Pods of the examples run on masters without a registry, with no more rights than they need.
func TestThePodsOfTheExamplesAreModest(t *testing.T) {
	for _, name := range replica.AddonExamples {
		for _, document := range strings.Split(string(examples.Manifest(cluster(t, name), name)), "\n---\n") {
			var o appsv1.Deployment // a DaemonSet has its pods' template at the same place
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if o.Kind != "Deployment" && o.Kind != "DaemonSet" {
				continue
			}
			pod := o.Spec.Template.Spec
			if len(pod.Containers) != 1 || !tolerated(pod.Tolerations) {
				t.Errorf("%s %s: %d containers, tolerations %v", o.Kind, o.Name, len(pod.Containers), pod.Tolerations)
			}
			for _, c := range pod.Containers {
				s := c.SecurityContext
				if c.ImagePullPolicy != corev1.PullNever || !strings.HasPrefix(c.Image, "quorate.local/") {
					t.Errorf("%s: %s is pulled: %s", o.Name, c.Image, c.ImagePullPolicy)
				}
				if s.Privileged != nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
					!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
					c.Resources.Requests.Cpu().IsZero() || c.ReadinessProbe == nil {
					t.Errorf("%s: %+v", o.Name, c)
				}
			}
		}
	}
}

func tolerated(tolerations []corev1.Toleration) bool {
	taint := corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
	return slices.ContainsFunc(tolerations, func(x corev1.Toleration) bool {
		return x.Operator == corev1.TolerationOpExists && (x.Key == "" || x.Key == taint.Key)
	})
}

// The scripts that make the images and import them name them as the manifests do.
func TestTheImagesBearTheTagOfTheManifests(t *testing.T) {
	manifest := string(examples.Manifest(cluster(t, replica.CoreDNS), replica.CoreDNS))
	_, tag, _ := strings.Cut(manifest, "quorate.local/coredns:")
	tag, _, _ = strings.Cut(tag, "\n")
	for path, name := range map[string]string{
		"examples.sh": `"quorate.local/$1:` + tag + `"`,
		"files/master/usr/lib/quorate/addon-images": `quorate.local/$(basename "$archive" .tar):` + tag + "\n",
	} {
		script, err := os.ReadFile(filepath.Join("../../images/master", path))
		if err != nil {
			t.Fatal(err)
		}
		if tag == "" || !strings.Contains(string(script), name) {
			t.Errorf("%s does not name an image by the tag %q", path, tag)
		}
	}
}

// A master with another image would change the manifests back for ever, if two of them had one version.
func TestAChangeOfTheManifestsIsANewEdition(t *testing.T) {
	const edition, want = "1", "9d4ef3edf88e580c"
	files, err := filepath.Glob("manifests/*")
	if err != nil || len(files) != len(replica.AddonExamples) {
		t.Fatalf("%q, %v: the examples are %q", files, err, replica.AddonExamples)
	}
	h := sha256.New()
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(h, bytes.NewReader(text))
	}
	if got := hex.EncodeToString(h.Sum(nil))[:16]; got != want {
		t.Errorf("the manifests are %s, those of edition %s are %s: raise the edition once others may have it",
			got, edition, want)
	}
	c := cluster(t, replica.CoreDNS)
	c.Addons.Version = 7
	if got := examples.Version(c); got != "7."+edition+"\n" {
		t.Errorf("version %q", got)
	}
}
