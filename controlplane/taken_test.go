package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"iter"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// chaos makes the random documents many, and others each time: QUORATE_CHAOS=1, which `make chaos` sets.
var chaos = os.Getenv("QUORATE_CHAOS") == "1"

// The certificates of a document are issued, a program's flags are taken, a control plane starts: each for as many
// documents as there is time for. `make test` takes the same ones each time.
const (
	issuedDocuments, issuedInChaos   = 40, 1000
	takenDocuments, takenInChaos     = 20, 200
	startedDocuments, startedInChaos = 1, 20

	// enough is the time that each of the three may take in `make test`.
	enough = 6 * time.Second
)

// randomDocuments are documents whose files are in a folder of the test's own.
func randomDocuments(t *testing.T, salt uint64) documents {
	t.Helper()
	dir := t.TempDir()
	ca := newPair(t)
	for name, data := range map[string][]byte{
		"audit.yaml": auditPolicy, "token": []byte("token"), "client.pem": ca.both,
		"webhook.kubeconfig": []byte(`{apiVersion: v1, kind: Config, users: [{name: a, user: {}}], current-context: a,
			clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}],
			contexts: [{name: a, context: {cluster: a, user: a}}]}`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(1)
	if chaos {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	replace := strings.NewReplacer("FOLDER", dir, `"CA"`, fmt.Sprintf("%q", ca.certificate))
	return documents{rand.New(rand.NewPCG(seed, salt)), replace}
}

// several are so many documents, or, in `make test`, as many as there is time for.
func (d documents) several(t *testing.T, usual, inChaos int) iter.Seq2[string, *replica.Cluster] {
	return func(yield func(string, *replica.Cluster) bool) {
		n, begun := usual, time.Now()
		if chaos {
			n = inChaos
		}
		for i := range n {
			if !chaos && time.Since(begun) > enough {
				t.Logf("there was time for %d of %d documents", i, n)
				return
			}
			if !yield(d.next(t)) {
				return
			}
		}
	}
}

// TestDocumentsThatValidateGetCertificates: there is nothing in a valid document that cannot stand in a certificate.
func TestDocumentsThatValidateGetCertificates(t *testing.T) {
	d := randomDocuments(t, 1)
	bundle, err := certs.NewBundle("6f1c1c4e-0000-4000-8000-000000000001", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for text, c := range d.several(t, issuedDocuments, issuedInChaos) {
		shares(seen, text)
		in := d.input(t, c)
		request := certs.Request{Files: in.Files, Bundle: bundle, Identity: in.Identity, Cluster: c, Now: time.Now()}
		if _, err := certs.Ensure(request); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		if _, _, err := Components(in); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	t.Logf("how many had what: %v", seen)
}

// input is a random replica of the document's cluster, with addresses of both families and folders of its own.
func (d documents) input(t *testing.T, c *replica.Cluster) Input {
	t.Helper()
	in := realInput(t)
	for name, component := range c.Components {
		if replica.Known(name) {
			component.Binary = in.Cluster.Components[name].Binary
			c.Components[name] = component
		}
	}
	in.Cluster = c
	names := []string{"master-1", "m", "m" + strings.Repeat("-", 61) + "1"}
	in.Identity = replica.Identity{
		Place:      replica.Place{Zone: "us-central1-" + string(rune('a'+d.IntN(6))), Name: names[d.IntN(len(names))]},
		InstanceID: "4711", Project: []string{"p", "example.com:proj", ""}[d.IntN(3)],
		Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.12"), netip.MustParseAddr("fd01::12")},
	}
	return in
}

// TestDocumentsThatValidateAreTaken starts the real programs with the flags and files of random documents, as far
// as they go by themselves: past all that they check before they ask anybody.
func TestDocumentsThatValidateAreTaken(t *testing.T) {
	withRealPrograms(t, documentsAreTaken, replica.APIServer, replica.Scheduler, replica.ControllerManager)
}

func documentsAreTaken(t *testing.T) {
	d := randomDocuments(t, 2)
	addAddresses(t, []netip.Addr{netip.MustParseAddr("10.240.0.12"), netip.MustParseAddr("fd01::12")})
	for text, c := range d.several(t, takenDocuments, takenInChaos) {
		p := controlPlane{in: d.input(t, c)}
		ensureCertificates(t, p.in)
		specs := p.specs(t, c.EncryptionAtRest == nil || *c.EncryptionAtRest)
		var g errgroup.Group
		for _, s := range specs {
			if hasKubernetesVersion(s.Name) {
				g.Go(func() error { return taken(t.Context(), s) })
			}
		}
		if err := g.Wait(); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// lastWord is what a program says once it has taken all of its flags. The apiserver reads the audit policy last of all,
// behind the files of authentication and authorization, with their CEL: one that is not there ends it.
var lastWord = map[string]string{
	replica.APIServer:         "loading audit policy file: failed to read",
	replica.ControllerManager: `"Starting" version=`,
	replica.Scheduler:         "Starting Kubernetes Scheduler",
}

// taken runs a program until it has said its last word, and is an error where it ends before.
func taken(ctx context.Context, s supervisor.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if s.Name == replica.APIServer {
		s.Args = append(slices.Clone(s.Args), "--audit-policy-file=/absent/audit.yaml")
	}
	cmd := exec.CommandContext(ctx, s.Path, s.Args...)
	cmd.Env = append(os.Environ(), s.Env...)
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return err
	}
	w.Close()
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var said bytes.Buffer
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if strings.Contains(lines.Text(), lastWord[s.Name]) {
			return nil
		}
		said.Write(append(lines.Bytes(), '\n'))
	}
	return fmt.Errorf("%s ended before it had taken all: %s", s.Name, said.Bytes()[max(0, said.Len()-2000):])
}

// TestDocumentsThatValidateStart starts whole control planes out of random documents, until a controller-manager
// leads and its controllers work: it reads some of its configuration only then.
func TestDocumentsThatValidateStart(t *testing.T) {
	withRealPrograms(t, documentsStart, "etcd", replica.APIServer, replica.Scheduler, replica.ControllerManager)
}

func documentsStart(t *testing.T) {
	d := randomDocuments(t, 3)
	addAddresses(t, []netip.Addr{netip.MustParseAddr("10.240.0.12"), netip.MustParseAddr("fd01::12")})
	for text, c := range d.several(t, startedDocuments, startedInChaos) {
		t.Run(c.Name, func(t *testing.T) {
			t.Logf("%s", text)
			p := controlPlane{in: d.input(t, c), base: fmt.Sprintf("https://127.0.0.1:%d", c.Endpoint.Port)}
			p.enter(t)
			startEtcd(t, p.in)
			for _, s := range p.specs(t, c.EncryptionAtRest == nil || *c.EncryptionAtRest) {
				if hasKubernetesVersion(s.Name) {
					startProcess(t, s)
				}
			}
			if !enabled(c, replica.ControllerManager) {
				return
			}
			eventually(t, "a controller of the controller-manager", func(context.Context) error {
				var published struct{ Data map[string]string }
				return p.get(t, "/api/v1/namespaces/default/configmaps/kube-root-ca.crt", &published)
			})
		})
	}
}

// pair is a self-signed certificate and its key, in PEM.
type pair struct {
	certificate string
	both        []byte
}

func newPair(t *testing.T) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return pair{string(certificate), append(certificate, keyPEM...)}
}
