package certs

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestBundleReadsBackAsItWasWritten(t *testing.T) {
	b := rotated(t, testBundle(t), t0.Add(time.Hour))
	data, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeBundle(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, again) {
		t.Error("a bundle read back is written otherwise")
	}
	if back.ClusterUID != "uid-1" || back.Generation != 2 || !back.Created.Equal(b.Created) ||
		len(back.authorities[EtcdPeer].former) != 1 {
		t.Errorf("read back %s, created %s", back, back.Created)
	}
}

func TestAGenerationStandsUnderItsNumber(t *testing.T) {
	data, err := testBundle(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := DecodeGeneration(1, data); err != nil || b.Generation != 1 {
		t.Errorf("%v, %v", b, err)
	}
	if _, err := DecodeGeneration(2, data); err == nil ||
		!strings.Contains(err.Error(), "stands as generation 2 in the record") {
		t.Error(err)
	}
	if _, err := DecodeGeneration(2, data[1:]); err == nil ||
		!strings.Contains(err.Error(), "bundle generation 2: decode bundle: ") {
		t.Error(err)
	}
}

func TestNewBundleNeedsACluster(t *testing.T) {
	if _, err := NewBundle("", t0); err == nil {
		t.Error("made a bundle for no cluster")
	}
}

// edited is an encoded bundle with one thing changed.
func edited(t *testing.T, edit func(doc map[string]any)) []byte {
	t.Helper()
	data, err := rotated(t, testBundle(t), t0).Encode()
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	edit(doc)
	if data, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecodeBundleRefusesAndNamesTheField(t *testing.T) {
	ca := func(d map[string]any, name string) map[string]any {
		return d["authorities"].(map[string]any)[name].(map[string]any)
	}
	for _, tc := range []struct {
		name string
		edit func(d map[string]any)
		want string
	}{
		{"another format", func(d map[string]any) { d["format"] = 2 }, "format: found 2"},
		{"an unknown field", func(d map[string]any) { d["extra"] = 1 }, `unknown field "extra"`},
		{"an unknown field further down", func(d map[string]any) { ca(d, "etcd-peer")["extra"] = 1 },
			`unknown field "authorities.etcd-peer.extra"`},
		{"a field in another case", func(d map[string]any) { d["ClusterUID"] = "x" }, `unknown field "ClusterUID"`},
		{"a value of another type", func(d map[string]any) { d["generation"] = "SECRET" },
			`field "generation": a JSON string cannot be a uint64`},
		{"no cluster", func(d map[string]any) { delete(d, "clusterUID") }, "clusterUID: missing"},
		{"no generation", func(d map[string]any) { delete(d, "generation") }, "generation: found 0"},
		{"no time", func(d map[string]any) { delete(d, "created") }, "created: missing"},
		{"three authorities", func(d map[string]any) { delete(d["authorities"].(map[string]any), "etcd-peer") },
			"authorities.etcd-peer: missing"},
		{"five authorities", func(d map[string]any) { d["authorities"].(map[string]any)["x"] = ca(d, "etcd-peer") },
			"authorities.x: unknown"},
		{"no certificate", func(d map[string]any) { delete(ca(d, "kubernetes"), "certificate") },
			"authorities.kubernetes.certificate: no PEM block"},
		{"two certificates", func(d map[string]any) {
			c := ca(d, "kubernetes")
			c["certificate"] = c["certificate"].(string) + c["certificate"].(string)
		}, "authorities.kubernetes.certificate: 2 certificates"},
		{"a key in the certificate's place",
			func(d map[string]any) { c := ca(d, "kubernetes"); c["certificate"] = c["key"] },
			`authorities.kubernetes.certificate: PEM block 1 is "PRIVATE KEY"`},
		{"text before the certificate", func(d map[string]any) {
			c := ca(d, "kubernetes")
			c["certificate"] = "hello\n" + c["certificate"].(string)
		}, "authorities.kubernetes.certificate: text outside"},
		{"text behind the key", func(d map[string]any) {
			c := ca(d, "kubernetes")
			c["key"] = c["key"].(string) +
				"hello"
		}, "authorities.kubernetes.key: text outside"},
		{"half a key", func(d map[string]any) { c := ca(d, "kubernetes"); c["key"] = c["key"].(string)[:80] },
			"authorities.kubernetes.key: PEM block 1 is damaged"},
		{"a key that is none", func(d map[string]any) {
			ca(d, "kubernetes")["key"] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
		}, "authorities.kubernetes.key: the private key cannot be parsed"},
		{"another CA's key", func(d map[string]any) { ca(d, "kubernetes")["key"] = ca(d, "etcd-peer")["key"] },
			"authorities.kubernetes.key: does not fit"},
		{"one CA for two", func(d map[string]any) {
			d["authorities"].(map[string]any)["front-proxy"] = ca(d, "kubernetes")
		}, "authorities.front-proxy.certificate: has the same key as authorities.kubernetes.certificate"},
		{"a former CA that is another's", func(d map[string]any) {
			ca(d, "etcd-peer")["former"] = ca(d,
				"etcd-client")["former"]
		},
			"has the same key as authorities.etcd-peer.former[0]"},
		{"a former CA that is the present one",
			func(d map[string]any) { c := ca(d, "etcd-peer"); c["former"] = []any{c["certificate"]} },
			"authorities.etcd-peer.former[0]: is the certificate that issues now"},
		{"a leaf as former CA", func(d map[string]any) {
			ca(d, "etcd-peer")["former"] = []any{string(encodeCertificates(mustIssue(t, testBundle(t), Agent,
				t0).cert))}
		}, "authorities.etcd-peer.former[0]: not a CA"},
		{"no service-account key", func(d map[string]any) { d["serviceAccountKeys"] = []any{} },
			"serviceAccountKeys: missing"},
		{"a weak service-account key", func(d map[string]any) {
			k, err := encodeKey(weakKey(t))
			if err != nil {
				t.Fatal(err)
			}
			d["serviceAccountKeys"] = []any{string(k)}
		}, "serviceAccountKeys[0]: weak key: ECDSA on P-224"},
		{"a CA's key as service-account key",
			func(d map[string]any) { d["serviceAccountKeys"] = []any{ca(d, "kubernetes")["key"]} },
			"serviceAccountKeys[0]: has the same key as authorities.kubernetes"},
		{"no encryption key", func(d map[string]any) { delete(d, "encryptionKeys") }, "encryptionKeys: missing"},
		{"a short encryption key",
			func(d map[string]any) { d["encryptionKeys"].([]any)[1].(map[string]any)["secret"] = "AAAA" },
			"encryptionKeys[1].secret: found 3 bytes"},
		{"an encryption key of zeros", func(d map[string]any) {
			d["encryptionKeys"].([]any)[0].(map[string]any)["secret"] = strings.Repeat("A", 43) + "="
		}, "encryptionKeys[0].secret: is all zero"},
		{"an encryption key that is no base64",
			func(d map[string]any) { d["encryptionKeys"].([]any)[0].(map[string]any)["secret"] = "SECRET!" },
			"encryptionKeys[0].secret: not base64"},
		{"an encryption key that is base64 with bits left over", func(d map[string]any) {
			d["encryptionKeys"].([]any)[0].(map[string]any)["secret"] = strings.Repeat("C", 42) + "B="
		}, "encryptionKeys[0].secret: not base64"},
		{"an encrypted key", func(d map[string]any) {
			c := ca(d, "kubernetes")
			c["key"] = strings.Replace(c["key"].(string), "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n\n", 1)
		}, "authorities.kubernetes.key: PEM block 1 has headers"},
		{"two encryption keys of one name",
			func(d map[string]any) { d["encryptionKeys"].([]any)[0].(map[string]any)["name"] = "g1" },
			`encryptionKeys[1].name: "g1" is there twice`},
		{"an encryption key's name with a newline",
			func(d map[string]any) { d["encryptionKeys"].([]any)[0].(map[string]any)["name"] = "a\nb" },
			"encryptionKeys[0].name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := DecodeBundle(edited(t, tc.edit))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}
}

func TestDecodeBundleRefusesDamagedText(t *testing.T) {
	data, err := testBundle(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"nothing":       nil,
		"HTML":          []byte("<html>404</html>"),
		"half":          data[:len(data)/2],
		"trailing data": append(bytes.Clone(data), data...),
		"a field twice": bytes.Replace(data, []byte(`{"format":1,`), []byte(`{"format":1,"format":1,`), 1),
	} {
		if _, err := DecodeBundle(text); err == nil || len(err.Error()) > 200 {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// remade is an authority whose certificate was changed and signed again with its own key.
func remade(t *testing.T, a authority, edit func(c *x509.Certificate)) authority {
	t.Helper()
	template := *a.cert
	template.SerialNumber = big.NewInt(7)
	edit(&template)
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// endsAt gives a certificate another end.
func endsAt(end time.Time) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotAfter = end }
}

func TestBundleRefusesCertificatesThatAreNoCAs(t *testing.T) {
	for want, edit := range map[string]func(c *x509.Certificate){
		"not a CA certificate": func(c *x509.Certificate) { c.IsCA, c.MaxPathLenZero, c.MaxPathLen = false, false, -1 },
		"key usage":            func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature },
	} {
		b := testBundle(t)
		b.authorities[FrontProxy] = remade(t, b.authorities[FrontProxy], edit)
		if err := b.validate(); err == nil || !strings.Contains(err.Error(), "authorities.front-proxy.certificate: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestBundleAllowsARenewedCAWithTheSameKey(t *testing.T) {
	b := testBundle(t)
	old := b.authorities[Kubernetes]
	next := remade(t, old, func(c *x509.Certificate) { c.NotAfter = c.NotAfter.Add(time.Hour) })
	next.former = old.trust()
	b.authorities[Kubernetes] = next
	if err := b.validate(); err != nil {
		t.Error(err)
	}
}

func TestNoWayOfPrintingShowsAKey(t *testing.T) {
	b := testBundle(t)
	p := mustIssue(t, b, Agent, t0)
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+verb+"\n", b, b.authorities, p, b.encryption)
	}
	fmt.Fprint(&out, Request{Bundle: b}, []any{b}, map[string]*Bundle{"b": b})
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(h).Info("x", "bundle", b, "in", []any{b}, "request", Request{Bundle: b})
	}
	encoded, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	secrets := map[string][]byte{"encryption key": b.encryption[0].secret}
	for _, name := range Authorities() {
		der, err := x509.MarshalPKCS8PrivateKey(b.authorities[name].key)
		if err != nil {
			t.Fatal(err)
		}
		secrets[string(name)] = der[36:60] // the scalar
	}
	for name, s := range secrets {
		for _, form := range []string{"%s", "%x", "%X", "%v", "%d"} {
			if strings.Contains(out.String(), strings.Trim(fmt.Sprintf(form, s[:16]), "[]")) {
				t.Errorf("%s is shown as %s", name, form)
			}
		}
		if strings.Contains(out.String(), new(big.Int).SetBytes(s).String()[:12]) {
			t.Errorf("%s is shown as a number", name)
		}
	}
	if strings.Contains(out.String(), "PRIVATE KEY") ||
		!strings.Contains(out.String(), "bundle generation 1 of cluster uid-1 [keys redacted]") {
		t.Errorf("printed %s", out.String())
	}
}
