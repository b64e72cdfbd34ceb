package extra_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io/fs"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/quorate/quorate/images/extra"
)

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

var image = extra.Image{Manifest: "manifest", Debs: []string{"deb image curl 7 amd64 " + zeros},
	Paths: []string{"etc/chrony/chrony.conf"}}

// certificate makes one in PEM.
func certificate(t *testing.T, ca bool) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "site"}, IsCA: ca,
		BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// whole is a folder that has all there may be.
func whole(t *testing.T) fstest.MapFS {
	t.Helper()
	return folder(map[string]string{
		"README.md": "ours\n",
		"packages":  "# what we need\nnode-exporter\ncurl\n",
		"manifest": "of " + extra.PinsHash(image.Debs) + "\n" +
			"deb image node-exporter 1.5.0-1+b6 amd64 " + zeros + "\n",
		"certificates/site.crt": certificate(t, true),
		"proxy": "HTTPS_PROXY=http://proxy.example.com:3128\n" +
			"NO_PROXY=.example.com,10.0.0.0/8,10.1.2.3\n",
		"sources": "deb https://mirror.example.com/debian bookworm main\n",
		"units/site.service": "; ours\n[Service]\nExecStart=/opt/site/run \\\n" +
			"  --flag\n\n[Install]\nWantedBy=multi-user.target\n",
		"units/site@.service":                  "[Service]\nExecStart=/opt/site/run %i\n[Install]\nWantedBy=multi-user.target\n",
		"units/kubelet.service.d/10-site.conf": "[Service]\nNice=1\n",
		"files/opt/site/run":                   "#!/bin/sh\n",
		"files/etc/site.conf":                  "a=b\n",
	})
}

func folder(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o600}
	}
	if f := m["files/opt/site/run"]; f != nil {
		f.Mode = 0o700
	}
	return m
}

func TestAFoldersPartsHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	e, err := extra.Read("site", whole(t), image)
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]fs.FileMode{}
	text := map[string]string{}
	for _, f := range e.Files {
		places[f.Path], text[f.Path] = f.Mode, string(f.Content)
	}
	for path, mode := range map[string]fs.FileMode{
		"etc/systemd/system/site.service": 0o644, "etc/systemd/system/kubelet.service.d/10-site.conf": 0o644,
		"etc/systemd/system/site@.service": 0o644, "usr/local/share/ca-certificates/site.crt": 0o644,
		"opt/site/run": 0o755, "etc/site.conf": 0o644, "etc/quorate/proxy.env": 0o644,
	} {
		if places[path] != mode {
			t.Errorf("%s has the rights %o, want %o", path, places[path], mode)
		}
	}
	if len(places) != 7 {
		t.Errorf("the image gets %v", places)
	}
	const proxy = "HTTPS_PROXY=http://proxy.example.com:3128\nNO_PROXY=localhost,127.0.0.0/8,::1,169.254.169.254," +
		"metadata.google.internal,metadata,.example.com,10.0.0.0/8,10.1.2.3\n"
	if !strings.HasSuffix(text["etc/quorate/proxy.env"], proxy) {
		t.Errorf("the proxy's file is %q, want %q", text["etc/quorate/proxy.env"], proxy)
	}
	if !slices.Equal(e.Enabled, []string{"site.service"}) {
		t.Errorf("enabled are %v", e.Enabled)
	}
	want := extra.Package{Name: "node-exporter", Version: "1.5.0-1+b6", Architecture: "amd64", Hash: zeros}
	if !slices.Equal(e.Packages, []string{"node-exporter", "curl"}) || !slices.Equal(e.Pinned, []extra.Package{want}) {
		t.Errorf("packages %v, pinned %v", e.Packages, e.Pinned)
	}
}

// The same folder, checked out by others with another umask, is the same.
func TestAFoldersHashIsOfWhatCounts(t *testing.T) {
	t.Parallel()
	hash := func(change func(fstest.MapFS)) string {
		f := folder(map[string]string{"packages": "curl\n", "files/opt/site/run": "#!/bin/sh\n"})
		change(f)
		e, err := extra.Read("site", f, image)
		if err != nil {
			t.Fatal(err)
		}
		return e.Hash
	}
	first := hash(func(fstest.MapFS) {})
	elsewhere := func(f fstest.MapFS) { f["packages"].Mode, f["packages"].ModTime = 0o664, time.Now() }
	if hash(elsewhere) != first {
		t.Error("another umask and time give another hash")
	}
	for name, change := range map[string]func(fstest.MapFS){
		"another content": func(f fstest.MapFS) { f["packages"].Data = []byte("# none\n") },
		"no right to run": func(f fstest.MapFS) { f["files/opt/site/run"].Mode = 0o600 },
		"another file":    func(f fstest.MapFS) { f["README.md"] = &fstest.MapFile{} },
	} {
		if hash(change) == first {
			t.Errorf("%s gives the same hash", name)
		}
	}
}

func TestWhatAFolderMayNotHoldIsNamed(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"
	ca := certificate(t, true)
	for _, c := range []struct{ name, file, text, want string }{
		{"a file of no part", "unit/x.service", "", "site/unit/x.service: found no part of such a folder; allowed: "},
		{"a package with a version", "packages", "node-exporter\ncurl=7\n",
			`site/packages:2: found "curl=7"; allowed: the name`},
		{"a package twice", "packages", "node-exporter\n\nnode-exporter\n",
			"site/packages:3: found node-exporter a second"},
		{"a package without a pin", "packages", "node-exporter\nhtop\n",
			"site/packages:2: found htop, which manifest does not"},
		{"a line of the manifest", "manifest", "deb image htop 3 amd64\n",
			`site/manifest:1: found "deb image htop 3 amd64"`},
		{"a pin of the image's", "manifest", "deb image curl 8 amd64 " + zeros + "\n",
			"site/manifest:1: found curl, which the image"},
		{"pins for others", "manifest", "of " + zeros + "\ndeb image node-exporter 1 amd64 " + zeros + "\n",
			"site/manifest: found pins that were resolved for another"},
		{"pins that nobody asked for", "packages", "", "site/manifest: found pins without a name"},
		{"a source", "sources", "\ndeb mirror bookworm\n",
			`site/sources:2: found "deb mirror bookworm"; allowed: deb URL`},
		{"no source", "sources", "# none\n", "site/sources: found no source"},
		{"no source in the other format", "sources", "Types: deb-src\nURIs: http://x\n",
			"site/sources: found no source"},
		{"another variable", "proxy", "HTTPS_PROXY=http://p:1\nFTP_PROXY=http://p:1\n",
			`site/proxy:2: found "FTP_PROXY=http://p:1"`},
		{"a proxy twice", "proxy", "HTTPS_PROXY=http://p:1\nHTTPS_PROXY=http://q:1\n",
			`site/proxy:2: found "HTTPS_PROXY=http://q:1"`},
		{"a proxy of another kind", "proxy", "HTTPS_PROXY=socks5://p:1\n",
			`site/proxy:1: found HTTPS_PROXY with "socks5://p:1"; allowed: http://`},
		{"a password", "proxy", "HTTPS_PROXY=http://a:secret@p:1\n",
			"site/proxy:1: found HTTPS_PROXY with a user or password"},
		{"no proxy", "proxy", "NO_PROXY=a\n", "site/proxy: found no proxy"},
		{"an exception with a space", "proxy", "HTTPS_PROXY=http://p:1\nNO_PROXY=a, b\n",
			`site/proxy:2: found " b"; allowed: names`},
		{"a leaf", "certificates/a.crt", certificate(t, false),
			"site/certificates/a.crt: found the certificate of CN=site, which is no CA's"},
		{"a key", "certificates/a.crt", key, "site/certificates/a.crt: found a block of type PRIVATE KEY"},
		{"two certificates", "certificates/a.crt", "one\n" + ca + ca,
			"found something behind the certificate"},
		{"DER", "certificates/a.crt", "0\x82", "site/certificates/a.crt: found no PEM"},
		{"a certificate's name", "certificates/a.pem", ca, "allowed: certificates/NAME.crt"},
		{"no unit", "units/x.txt", "", "site/units/x.txt: found no unit"},
		{"our unit", "units/containerd.service", "[Unit]\n",
			"allowed: a drop-in for it: units/containerd.service.d/NAME.conf"},
		{"our drop-in", "units/quorate.service.d/image.conf", "[Unit]\n",
			"found the name of the image's own drop-in"},
		{"a unit without a section", "units/x.service", "ExecStart=/bin/true\n",
			`site/units/x.service:1: found "ExecStart=/bin/true" before`},
		{"a unit's line", "units/x.service", "[Service]\nExecStart\n",
			`site/units/x.service:2: found "ExecStart"; allowed: [SECTION]`},
		{"an empty unit", "units/x.service", "", "site/units/x.service: found an empty file"},
		{"a file of the image's", "files/etc/chrony/chrony.conf", "",
			"found a file of the image's own, /etc/chrony/chrony.conf"},
		{"a place for no files", "files/var/lib/x", "",
			"site/files/var/lib/x: found a place that is not for files; allowed: files/etc"},
		{"a machine's own file", "files/etc/ssh/ssh_host_rsa_key", "",
			"found a file that is each machine's own"},
		{"a unit among the files", "files/etc/systemd/system/x.service", "",
			"allowed: other files; units in units/"},
		{"a secret", "files/etc/x", "x\n" + key,
			"site/files/etc/x: found a private key; allowed: no secrets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := whole(t)
			f[c.file] = &fstest.MapFile{Data: []byte(c.text), Mode: 0o644}
			_, err := extra.Read("site", f, image)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret@") {
				t.Errorf("the fault shows a password: %v", err)
			}
		})
	}
}

func TestAllFaultsComeAtOnceAndLinksAreOne(t *testing.T) {
	t.Parallel()
	f := whole(t)
	f["files/etc/link"] = &fstest.MapFile{Data: []byte("/etc/shadow"), Mode: fs.ModeSymlink | 0o777}
	f["other"] = &fstest.MapFile{}
	_, err := extra.Read("site", f, image)
	if err == nil || !strings.Contains(err.Error(), "site/files/etc/link: found a link") ||
		!strings.Contains(err.Error(), "site/other: found no part") {
		t.Errorf("got %v", err)
	}
	if _, err := extra.Read("site", fstest.MapFS{}, image); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
}

// Each architecture has pins of its own.
func TestPinsForAnotherArchitectureAreNotThoseOfTheImage(t *testing.T) {
	t.Parallel()
	f, other := whole(t), image
	f["manifest.arm64"] = &fstest.MapFile{Data: []byte("of " + extra.PinsHash(image.Debs) + "\n" +
		"deb image node-exporter 1.5.0-1+b9 arm64 " + zeros + "\n")}
	other.Manifest = "manifest.arm64"
	for _, c := range []struct {
		image extra.Image
		want  string
	}{{image, "1.5.0-1+b6"}, {other, "1.5.0-1+b9"}} {
		e, err := extra.Read("site", f, c.image)
		if err != nil || len(e.Pinned) != 1 || e.Pinned[0].Version != c.want {
			t.Errorf("%s: pinned %v, %v; want version %s", c.image.Manifest, e.Pinned, err, c.want)
		}
	}
	delete(f, "manifest.arm64")
	const want = "which manifest.arm64 does not pin; allowed: what ARCH=arm64 images/master/pin.sh extra writes"
	if _, err := extra.Read("site", f, other); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// The image's own files and pins are read from where a bake takes them.
func TestOfImageKnowsTheImagesFilesAndPins(t *testing.T) {
	t.Parallel()
	image, err := extra.OfImage("../master/manifest")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"etc/kubernetes/kubelet.yaml", "usr/lib/systemd/network/20-master.network",
		"usr/local/bin/kubelet"} {
		if !slices.Contains(image.Paths, path) {
			t.Errorf("it does not know %s", path)
		}
	}
	if len(image.Debs) < 100 || !strings.HasPrefix(image.Debs[0], "deb image ") {
		t.Errorf("it knows %d packages", len(image.Debs))
	}
}
