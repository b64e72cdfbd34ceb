package nodes

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// Cluster is where nodes belong to: the apiservers' endpoint, whom they trust there, and who signs what they show.
type Cluster struct {
	Server string // https://…
	Meter  *Meter

	authority []byte // PEM
	ca        *x509.Certificate
	key       crypto.Signer
	leafKey   *ecdsa.PrivateKey // one for all: making hundreds is no part of what is measured
}

// NewCluster reads the authority that signs clients' certificates, as the controller-manager does: files in PEM.
func NewCluster(server, trusted, certificate, key string, m *Meter) (*Cluster, error) {
	c := &Cluster{Server: server, Meter: m}
	var err error
	if c.authority, err = os.ReadFile(trusted); err != nil {
		return nil, err
	}
	signer, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read the clients' authority: %w", err)
	}
	c.ca, c.key = signer.Leaf, signer.PrivateKey.(crypto.Signer)
	c.leafKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return c, err
}

// Connection is one client's own way to the endpoint: nobody else's requests go over it.
type Connection struct {
	// Long has no time-out, as what watches; Short has one of 10 s, as the kubelet's heartbeats.
	Long, Short kubernetes.Interface
	dialer      *connrotation.Dialer
}

// heartbeatTimeout is the kubelet's: the smaller of the status' period and the lease's duration.
const heartbeatTimeout = 10 * time.Second

// Connect makes a connection for a user of a group. who is its name in the meter; qps is what client-go bounds.
func (c *Cluster) Connect(who, user, group string, qps float32) (*Connection, error) {
	leaf, key, err := c.issue(user, group)
	if err != nil {
		return nil, err
	}
	conn := &Connection{dialer: connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second,
		KeepAlive: 30 * time.Second}).DialContext)}
	conf := &rest.Config{Host: c.Server, QPS: qps, Burst: int(2 * qps), Dial: conn.dialer.DialContext,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority, CertData: leaf, KeyData: key},
		ContentConfig: rest.ContentConfig{AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType: "application/vnd.kubernetes.protobuf"},
		WrapTransport: c.Meter.wrap(who)}
	long, err := rest.HTTPClientFor(conf)
	if err != nil {
		return nil, err
	}
	short := &http.Client{Transport: long.Transport, Timeout: heartbeatTimeout}
	if conn.Long, err = kubernetes.NewForConfigAndClient(conf, long); err != nil {
		return nil, err
	}
	conn.Short, err = kubernetes.NewForConfigAndClient(conf, short)
	return conn, err
}

// Close ends what is open of it.
func (c *Connection) Close() { c.dialer.CloseAll() }

// issue signs a certificate of a client for a day.
func (c *Cluster) issue(user, group string) (leaf, key []byte, err error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	subject := pkix.Name{CommonName: user}
	if group != "" {
		subject.Organization = []string{group}
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: serial, Subject: subject,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		c.ca, c.leafKey.Public(), c.key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalECPrivateKey(c.leafKey)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), nil
}
