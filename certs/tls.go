package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"
)

// bootstrapLifetime is how long the certificate lives with which the agent applies its own RBAC.
const bootstrapLifetime = time.Minute

// BootstrapClient makes a client certificate of system:masters that stands in no file and ends after a minute. The
// agent binds its own user to what it may do with it, and from then on is quorate:agent.
func BootstrapClient(b *Bundle, now time.Time) (tls.Certificate, error) {
	p, err := issuePerson(b, Spec{Leaf: bootstrap, CommonName: "quorate:bootstrap", Lifetime: bootstrapLifetime}, now)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make bootstrap certificate: %w", err)
	}
	return p.tls(), nil
}

// EtcdTLS is the agent's side of connections to etcd's client port, as quorate-agent-etcd-client.
func EtcdTLS(f Files) (*tls.Config, error) { return clientTLS(f, EtcdClient, AgentEtcd) }

// APIServerTLS is the agent's side of connections to the replica's own apiserver, as quorate:agent.
func APIServerTLS(f Files) (*tls.Config, error) { return clientTLS(f, Kubernetes, Agent) }

// clientTLS reads the leaf from its file at each handshake, so that a renewed one is used without a restart. The trust
// bundle is read once, as etcd and the apiserver do: make a new config when Report names it as changed.
func clientTLS(f Files, a Authority, l Leaf) (*tls.Config, error) {
	data, err := os.ReadFile(f.CA(a))
	if err != nil {
		return nil, fmt.Errorf("read %s CA: %w", a, err)
	}
	roots, err := parseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.CA(a), err)
	}
	pool := x509.NewCertPool()
	for _, r := range roots {
		pool.AddCert(r)
	}
	path := f.Leaf(l)
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    pool,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(path, path)
			if err != nil {
				return nil, fmt.Errorf("read leaf %s: %w", l, err)
			}
			return &c, nil
		},
	}, nil
}
