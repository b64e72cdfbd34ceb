package certs

import (
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigsNameFilesAndTheLocalAPIServer(t *testing.T) {
	r := testRequest(t, testBundle(t))
	r.Cluster.Endpoint.Port = 6443
	mustEnsure(t, r)
	for _, l := range Kubeconfigs() {
		config, err := clientcmd.BuildConfigFromFlags("", r.Files.Kubeconfig(l))
		if err != nil {
			t.Errorf("%s: %v", l, err)
			continue
		}
		if config.Host != "https://127.0.0.1:6443" || config.CAFile != r.Files.CA(Kubernetes) ||
			config.CertFile != r.Files.Leaf(l) || config.KeyFile != r.Files.Leaf(l) {
			t.Errorf("%s: %s %+v", l, config.Host, config.TLSClientConfig)
		}
		if len(config.CertData)+len(config.KeyData)+len(config.CAData) != 0 || config.Insecure ||
			config.ServerName != "" {
			t.Errorf("%s holds data", l)
		}
	}
	if err := loadLeaf(t, r.Files, APIServer).VerifyHostname("127.0.0.1"); err != nil {
		t.Errorf("the server that they name: %v", err)
	}
}

func TestAdminKubeconfigIsOneFileForADay(t *testing.T) {
	b := rotated(t, testBundle(t), t0)
	for lifetime, ends := range map[time.Duration]time.Duration{0: AdminLifetime, time.Hour: time.Hour,
		LeafLifetime: LeafLifetime} {
		text, err := AdminKubeconfig(b, testCluster(), "https://203.0.113.7", lifetime, t0)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != "https://203.0.113.7" || config.CAFile+config.CertFile+config.KeyFile != "" {
			t.Errorf("%s %+v", config.Host, config.TLSClientConfig)
		}
		p, err := parsePair(append(append([]byte{}, config.CertData...), config.KeyData...))
		if err != nil {
			t.Fatal(err)
		}
		if p.cert.Subject.String() != "CN=quorate:admin,O=system:masters" || !p.cert.NotAfter.Equal(t0.Add(ends)) {
			t.Errorf("%s until %s", p.cert.Subject, p.cert.NotAfter)
		}
		if cs, err := parseCertificates(config.CAData); err != nil || len(cs) != 2 ||
			!cs[0].Equal(b.authorities[Kubernetes].cert) {
			t.Errorf("trusts %d, %v", len(cs), err)
		}
	}
}

func TestAdminKubeconfigRefuses(t *testing.T) {
	b := testBundle(t)
	for _, server := range []string{"", "203.0.113.7", "http://203.0.113.7", "https://"} {
		if _, err := AdminKubeconfig(b, testCluster(), server, 0, t0); err == nil ||
			!strings.Contains(err.Error(), "https://203.0.113.7 is allowed") {
			t.Errorf("server %q: %v", server, err)
		}
	}
	for _, lifetime := range []time.Duration{-time.Hour, time.Second, LeafLifetime + 1} {
		if _, err := AdminKubeconfig(b, testCluster(), "https://203.0.113.7", lifetime, t0); err == nil {
			t.Errorf("lifetime %s", lifetime)
		}
	}
}

func TestNoFileOfAReplicaIsAMasters(t *testing.T) {
	r := testRequest(t, testBundle(t))
	mustEnsure(t, r)
	for _, l := range leafNames() {
		if strings.Contains(loadLeaf(t, r.Files, Leaf(l)).Subject.String(), "system:masters") {
			t.Errorf("%s is in system:masters", l)
		}
	}
	if _, err := os.Stat(r.Files.Leaf(admin)); err == nil {
		t.Error("an administrator's leaf was written")
	}
}
