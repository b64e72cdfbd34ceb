package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/table"
)

// escrow is the cluster's bundle, as it is in what `quorate bundle export` writes and `import` reads: with it a case
// issues what no replica would.
type escrow struct {
	Format             int                   `json:"format"`
	ClusterUID         string                `json:"clusterUID"`
	Generation         uint64                `json:"generation"`
	Created            time.Time             `json:"created"`
	Authorities        map[string]*authority `json:"authorities"`
	ServiceAccountKeys []string              `json:"serviceAccountKeys"`
	EncryptionKeys     json.RawMessage       `json:"encryptionKeys"`
}

// authority is one CA of it, in PEM: the certificate that issues, its key, and further ones that are trusted.
type authority struct {
	Certificate string   `json:"certificate"`
	Key         string   `json:"key"`
	Former      []string `json:"former,omitempty"`
}

// passphrase is that of the cases' escrows.
const passphrase = "correct horse battery staple"

// passphraseFile is a file with it.
func (c *cluster) passphraseFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "passphrase")
	c.must(t, os.WriteFile(path, []byte(passphrase), 0o600))
	return path
}

// export takes the bundle out of the record.
func (c *cluster) export(t *testing.T) (e escrow) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "escrow")
	_, err := c.quorate(t, "bundle", "export", "--passphrase-file", c.passphraseFile(t), path)
	c.must(t, err)
	sealed, err := os.ReadFile(path)
	c.must(t, err)
	b, err := certs.OpenEscrow(sealed, passphrase)
	c.must(t, err)
	plain, err := b.Encode()
	c.must(t, err)
	c.must(t, json.Unmarshal(plain, &e))
	return e
}

// imports brings a further generation into the record, as an operator does.
func (c *cluster) imports(t *testing.T, e escrow) error {
	t.Helper()
	plain, err := json.Marshal(e)
	c.must(t, err)
	b, err := certs.DecodeBundle(plain)
	c.must(t, err)
	sealed, err := b.Escrow(passphrase)
	c.must(t, err)
	path := filepath.Join(t.TempDir(), fmt.Sprintf("generation-%d", e.Generation))
	c.must(t, os.WriteFile(path, sealed, 0o600))
	_, err = c.quorate(t, "bundle", "import", "--passphrase-file", c.passphraseFile(t), "--yes", path)
	return err
}

// pair is what crypto/tls makes of the CA.
func (a *authority) pair(t *testing.T) tls.Certificate {
	t.Helper()
	p, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// another is a CA like this one, with a key of its own.
func (a *authority) another(t *testing.T) *authority {
	t.Helper()
	like := a.pair(t).Leaf
	next := *like
	next.Subject.CommonName += "-next"
	next.RawSubject, next.PublicKey, next.SubjectKeyId, next.AuthorityKeyId = nil, nil, nil, nil
	cert, key := sign(t, &next, nil)
	return &authority{Certificate: cert, Key: key}
}

// issuer is the CA of the bundle that a certificate is from.
func (e escrow) issuer(t *testing.T, cert *x509.Certificate) *authority {
	t.Helper()
	for _, a := range e.Authorities {
		if cert.CheckSignatureFrom(a.pair(t).Leaf) == nil {
			return a
		}
	}
	t.Fatalf("%s is from no CA of the bundle", cert.Subject)
	return nil
}

// forge issues a leaf like another, changed.
func (a *authority) forge(t *testing.T, like *x509.Certificate, change func(*x509.Certificate)) []byte {
	t.Helper()
	leaf := &x509.Certificate{RawSubject: like.RawSubject, NotBefore: like.NotBefore, NotAfter: like.NotAfter,
		KeyUsage:    like.KeyUsage,
		ExtKeyUsage: like.ExtKeyUsage, DNSNames: like.DNSNames, IPAddresses: like.IPAddresses}
	change(leaf)
	ca := a.pair(t)
	cert, key := sign(t, leaf, &ca)
	return []byte(cert + key)
}

// sign makes a key and its certificate, in PEM; one without an issuer signs itself.
func sign(t *testing.T, template *x509.Certificate, by *tls.Certificate) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	parent, signer := template, any(private)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// leaf is what stands in a leaf's place on a running VM's disk.
func (c *cluster) leaf(t *testing.T, vm, name string) *x509.Certificate {
	t.Helper()
	path := c.diskOf(vm, "pki/"+name+".pem")
	pem, err := os.ReadFile(path) // once: it may be renewed between two
	c.must(t, err)
	p, err := tls.X509KeyPair(pem, pem)
	c.must(t, err)
	return p.Leaf
}

// leaves are the names of all leaves on a VM's disk.
func (c *cluster) leaves(t *testing.T, vm string) (names []string) {
	t.Helper()
	list, err := filepath.Glob(c.diskOf(vm, "pki/*.pem"))
	c.must(t, err)
	for _, path := range list {
		names = append(names, filepath.Base(path[:len(path)-len(".pem")]))
	}
	if len(names) == 0 {
		t.Fatalf("%s has no leaves", vm)
	}
	return names
}

// plant puts leaves of the cluster's own CAs, changed, in the place of those on a running VM's disk.
func (c *cluster) plant(t *testing.T, e escrow, vm string, names []string, change func(*x509.Certificate)) {
	t.Helper()
	for _, name := range names {
		like := c.leaf(t, vm, name)
		path := c.diskOf(vm, "pki/"+name+".pem")
		c.must(t, os.WriteFile(path+".new", e.issuer(t, like).forge(t, like, change), 0o600))
		// On a VM of the image etcd has a user of its own.
		former, err := os.Stat(path)
		c.must(t, err)
		owner := former.Sys().(*syscall.Stat_t)
		c.must(t, os.Chown(path+".new", int(owner.Uid), int(owner.Gid)))
		c.must(t, os.Rename(path+".new", path))
	}
}

// knock asks the peer port of a VM for its version, with a leaf of the caller's. What etcd refuses is an error.
func (c *cluster) knock(t *testing.T, vm string, leaf []byte) error {
	t.Helper()
	pair, err := tls.X509KeyPair(leaf, leaf)
	c.must(t, err)
	// Whom we speak to is checked elsewhere: what is asked here is whether they speak with us.
	conf := &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: conf,
		DisableKeepAlives: true}}
	resp, err := client.Get("https://" + c.vm(vm).Address + ":" + strconv.Itoa(table.PeerPort) + "/version")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", resp.Status)
	}
	return nil
}

// host is where the test's own connections to the VMs come from.
func (c *cluster) host(t *testing.T) net.IP {
	t.Helper()
	conn, err := net.Dial("tcp", c.vm(c.vms[0]).Address+":"+strconv.Itoa(table.PeerPort))
	c.must(t, err)
	defer conn.Close()
	return conn.LocalAddr().(*net.TCPAddr).IP
}

// presented is the certificate that a port of a VM's member shows to whom connects.
func (c *cluster) presented(vm string, port int, as tls.Certificate) (*x509.Certificate, error) {
	conn, err := tls.Dial("tcp", c.vm(vm).Address+":"+strconv.Itoa(port),
		&tls.Config{Certificates: []tls.Certificate{as}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}
