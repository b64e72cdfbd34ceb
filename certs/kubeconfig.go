package certs

import (
	"fmt"
	"net/url"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/internal/replica"
)

// AdminLifetime is how long an administrator's certificate lives where nothing else is asked for. It cannot be revoked
// without a new CA, so it is short.
const AdminLifetime = 24 * time.Hour

// admin and bootstrap name the two certificates that are no replica's and stand in no file of it.
const (
	admin     Leaf = "admin"
	bootstrap Leaf = "bootstrap"
)

// mastersGroup may do everything, whatever RBAC says.
const mastersGroup = "system:masters"

// kubeconfig is that of a process on the replica. It goes to the replica's own apiserver, never to the load balancer:
// the certificate names loopback, and a replica whose own apiserver is down has nothing to lead. It names files, not
// data.
func kubeconfig(f Files, l Leaf, c *replica.Cluster) ([]byte, error) {
	return encodeKubeconfig(c.Name, string(l),
		clientcmdapi.Cluster{Server: fmt.Sprintf("https://127.0.0.1:%d", c.Endpoint.Port),
			CertificateAuthority: f.CA(Kubernetes)},
		clientcmdapi.AuthInfo{ClientCertificate: f.Leaf(l), ClientKey: f.Leaf(l)})
}

// AdminKubeconfig makes a kubeconfig for a person: one file that holds everything, for a user in system:masters. The
// server is the URL by which that person reaches the cluster. A lifetime of 0 is AdminLifetime; LeafLifetime is the
// longest.
func AdminKubeconfig(b *Bundle, c *replica.Cluster, server string, lifetime time.Duration, now time.Time) ([]byte,
	error) {
	if lifetime == 0 {
		lifetime = AdminLifetime
	}
	if err := CheckAdmin(server, lifetime); err != nil {
		return nil, fmt.Errorf("make admin kubeconfig: %w", err)
	}
	p, err := issuePerson(b, Spec{Leaf: admin, CommonName: "quorate:admin", Lifetime: lifetime}, now)
	if err != nil {
		return nil, fmt.Errorf("make admin kubeconfig: %w", err)
	}
	key, err := encodeKey(p.key)
	if err != nil {
		return nil, fmt.Errorf("make admin kubeconfig: %w", err)
	}
	return encodeKubeconfig(c.Name, "admin",
		clientcmdapi.Cluster{Server: server,
			CertificateAuthorityData: encodeCertificates(b.authorities[Kubernetes].trust()...)},
		clientcmdapi.AuthInfo{ClientCertificateData: encodeCertificates(p.cert), ClientKeyData: key})
}

// CheckAdmin says why no kubeconfig can be made for a server and a lifetime.
func CheckAdmin(server string, lifetime time.Duration) error {
	if u, err := url.Parse(server); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("server %q: a URL such as https://203.0.113.7 is allowed", server)
	}
	if lifetime < time.Minute || lifetime > LeafLifetime {
		return fmt.Errorf("lifetime %s: 1m to %s is allowed", lifetime, LeafLifetime)
	}
	return nil
}

// issuePerson issues a client certificate of system:masters, whose lifetime the caller bounds.
func issuePerson(b *Bundle, s Spec, now time.Time) (pair, error) {
	s.Authority, s.Organization, s.Usage = Kubernetes, mastersGroup, UsageClient
	i, err := newIssuer(b, now)
	if err != nil {
		return pair{}, err
	}
	return i.issue(s)
}

// encodeKubeconfig writes one cluster, one user and the context of both.
func encodeKubeconfig(cluster, user string, server clientcmdapi.Cluster, auth clientcmdapi.AuthInfo) ([]byte, error) {
	context := user + "@" + cluster
	out, err := yaml.Marshal(clientcmdapi.Config{
		APIVersion: "v1",
		Kind:       "Config",
		Clusters:   []clientcmdapi.NamedCluster{{Name: cluster, Cluster: server}},
		AuthInfos:  []clientcmdapi.NamedAuthInfo{{Name: user, AuthInfo: auth}},
		Contexts: []clientcmdapi.NamedContext{{Name: context, Context: clientcmdapi.Context{Cluster: cluster,
			AuthInfo: user}}},
		CurrentContext: context,
	})
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig of %s: %w", user, err)
	}
	return out, nil
}
