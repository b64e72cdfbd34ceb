package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// secrets are of all kinds that there are on a master; none may be in a file, wherever it stood.
var secrets = map[string]string{
	"token of a service account": "eyJhbGciOiJSUzI1NiIsImtpZCI6IjQifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl-x_Y",
	"access token of Google":     "ya29.a0AfH6SMBx9c2VjcmV0LXRva2Vu",
	"bootstrap token":            "abcdef.0123456789abcdef",
	"encryption key":             "c2VjcmV0LWVuY3J5cHRpb24ta2V5LTMyLWJ5dGVzISE=",
	"hexadecimal key":            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	"password":                   "hunter2Xy!9",
	"client secret":              "GOCSPX-4bXy7Tq9",
	"private key":                "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIGb\nAbCd==\n-----END EC PRIVATE KEY-----",
	"cut private key":            "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nQkJCQw",
	"seal key":                   "base64key://smGbjm71Nxd1Ig5FS0wj9SlbzAIrnolCz9bQQ6uAhl4=",
	"kubeconfig":                 "client-key-data: LS0tLS1CRUdJTiBFQyBQUklWQVRF",
	"bearer":                     "Authorization: Bearer mysecretword",
	"password in a sentence":     "password swordfish",
	"password in a URL":          "https://admin:swordfish9@proxy.example.com/",
}

// parts are what of a secret may not be found either: each long enough piece.
func parts(secret string) (out []string) {
	for _, p := range strings.FieldsFunc(secret, func(r rune) bool { return strings.ContainsRune(" \n-:=./", r) }) {
		if len(p) >= 6 && !slices.Contains([]string{"PRIVATE", "https", "Bearer", "Authorization", "password", "client",
			"base64key", "example", "abcdef"}, p) {
			out = append(out, p)
		}
	}
	return out
}

func TestNoSecretIsInTheFileWhereverItStands(t *testing.T) {
	for what, secret := range secrets {
		f := NewFilter([]string{"demo", "us-central1-a.master-a"}, nil)
		places := map[string]any{}
		for key, shapes := range fields {
			if slices.Contains(shapes, part) {
				places[key] = map[string]any{"name": secret, "reason": secret, "token": secret, secret: 1}
				continue
			}
			places[key] = secret
			places[key+"s"] = []any{secret, map[string]any{"reason": secret}}
		}
		places["token"], places["data"], places[secret] = secret, secret, secret
		places["env"] = map[string]any{"TOKEN": secret}
		places["extraArgs"] = []string{"--token=" + secret, "--token", secret}
		file := NewFile(f, "elsewhere", "devel", time.Now())
		file.Document("document.json", places)
		var log strings.Builder
		for _, form := range []string{"%s", "time=2026-11-23T10:00:00Z level=INFO msg=%q",
			"I1123 10:00:00.000001 12 a.go:1] %s",
			`E1123 10:00:00.1 7 b.go:9] "Failed" err="%s" node="master-a"`, `{"level":"warn","msg":"x","v":"%s"}`,
			"FLAG: --oidc-client-secret=%q", "GET /x?access_token=%s 200", "exec --password=%s", "prefix%ssuffix"} {
			fmt.Fprintf(&log, form+"\n", secret)
		}
		file.Log("logs/x.log", strings.NewReader(log.String()))
		file.Lacks("status.json", errors.New("ask: "+secret))
		all := unpack(t, file)
		for _, p := range append(parts(secret), secret) {
			for name, data := range all {
				if at := strings.Index(data, p); at >= 0 {
					t.Errorf("%s: %q is in %s: %q", what, p, name, data[max(0, at-60):min(len(data), at+60)])
				}
			}
		}
	}
}

func unpack(t *testing.T, f *File) map[string]string {
	t.Helper()
	b, err := f.Pack("x")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(data)
	}
}

// What a configured value is, nobody can tell by its looks.
func TestConfiguredValuesAreNeverTaken(t *testing.T) {
	f := NewFilter(nil, []string{"swordfish", "swordfishes", "true", "10s", "abc"})
	got := f.Text("it uses swordfishes and swordfish, true for 10s abc")
	if got != "it uses … and …, true for 10s abc" {
		t.Errorf("%q", got)
	}
}

func TestWhatALogSaysIsKept(t *testing.T) {
	f := NewFilter([]string{"us-central1-a.master-a", "8e9e05c52164694d", "demo"}, nil)
	for _, line := range []string{
		`time=2026-11-23T17:00:01.123Z level=INFO msg="phase done" phase=etcd took=1.234s`,
		`time=2026-11-23T17:00:01Z level=WARN msg="no longer blocked" name=no-quorum member=8e9e05c52164694d`,
		`I1123 17:00:01.123456       1 leaderelection.go:258] attempting to acquire leader lease kube-system/x...`,
		`E1123 17:00:01.123456       1 reflector.go:204] "Failed to watch" err="Get ` +
			`\"https://127.0.0.1:443/api/v1/nodes\": dial tcp 127.0.0.1:443: connect: connection refused" ` +
			`reflector="k8s.io/client-go/informers/factory.go:161"`,
		`{"level":"warn","ts":"2026-11-23T17:00:01.123Z","caller":"etcdserver/server.go:1144",` +
			`"msg":"failed to apply request","took":"12.5µs","remote-peer-id":"8e9e05c52164694d","term":7}`,
		"the disk has 12 MiB left of 2048, 99.4%: no space left on device (/var/lib/quorate/etcd)",
		"goroutine 12 [running]:\nmain.run(0xc000123456, 0x1)\n\t/src/agent/agent.go:12 +0x1d4",
		`quorate_wait_seconds{name="no-quorum",row="22"} 1.25e+01`,
		"the seal key does not open the bundle of generation 3: it was sealed with another one",
		`msg="archived etcd's directory" to=/var/lib/quorate/archive/etcd-20261128T005516.935`,
	} {
		if got := f.Text(line); got != line {
			t.Errorf("of\n%s\nis left\n%s", line, got)
		}
	}
}

func TestOnlyListedFieldsAreTakenAndOnlyWhatLooksAsTheySay(t *testing.T) {
	f := NewFilter([]string{"master-a"}, nil)
	var v any
	err := json.Unmarshal([]byte(`{"name":"master-a","instanceID":"1234567890123456789","ready":true,"epoch":3,
		"zone":"us-central1-a","since":"2026-11-23T17:00:00Z","addresses":["10.0.0.2","no address"],"privateKey":"x",
		"reason":"etcd has no leader","seal":{"key":"base64key://abc"},"record":{"url":"gs://bucket-1?endpoint=http://x"},
		"components":{"kube-apiserver":{"extraArgs":["--v=4","--token","abc"],"env":{"A":"b"},"secretName":"y"}},
		"members":[{"id":"8e9e05c52164694d","token":"x"}],"diskID":"not an id",
		"kernel":"6.1.0-38-cloud-amd64","etcd":"3.7.3","version":"5.14.0-570.el9_6.x86_64","election":"fast",
		"pendingRestart":[{"field":"network.podCIDR","before":"10.0.0.0/8","after":"x"}]}`), &v)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := f.Taken(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(taken)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"addresses":["10.0.0.2","…"],` +
		`"components":{"kube-apiserver":{"env":{"A":"…"},"extraArgs":["--v","--token","…"]}},"diskID":"…",` +
		`"election":"fast","epoch":3,"etcd":"3.7.3","instanceID":"1234567890123456789",` +
		`"kernel":"6.1.0-38-cloud-amd64","members":[{"id":"8e9e05c52164694d"}],"name":"master-a",` +
		`"pendingRestart":[{"field":"network.podCIDR"}],"ready":true,"reason":"etcd has no leader",` +
		`"record":{"url":"gs://bucket-1"},"seal":{"key":"base64key://…"},"since":"2026-11-23T17:00:00Z",` +
		`"version":"5.14.0-570.el9_6.x86_64","zone":"us-central1-a"}`
	if string(got) != want {
		t.Errorf("took\n%s\nwant\n%s", got, want)
	}
}

func TestAFileIsBounded(t *testing.T) {
	file := NewFile(NewFilter(nil, nil), "elsewhere", "devel", time.Now())
	line := strings.Repeat("a word ", 20) + "\n"
	long := "the first line\n" + strings.Repeat(line, 6_000) + "the last\n"
	for n := range 24 {
		file.Log(fmt.Sprintf("logs/%d.log", n), strings.NewReader(long))
	}
	m, all := file.Manifest(), unpack(t, file)
	if len(m.Missing) == 0 || len(m.Parts)+len(m.Missing) != 24 || file.size > longestFile {
		t.Errorf("%d parts, %d are missing, %d bytes", len(m.Parts), len(m.Missing), file.size)
	}
	first := all["x/logs/0.log"]
	if len(first) > longestPart || !strings.HasPrefix(first, "… (") || !strings.HasSuffix(first, "the last\n") {
		t.Errorf("%d bytes: %q", len(first), first[:80])
	}
}
