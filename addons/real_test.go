package addons

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// withCluster runs the calling test again in a network and pid namespace of its own, and there what is inside, beside
// the real etcd and kube-apiserver with the flags and the authorization of a master.
func withCluster(t *testing.T, inside func(*testing.T, *realCluster)) {
	if testing.Short() {
		t.Skip("starts real programs; not with -short")
	}
	realtest.Program(t, "etcd")
	realtest.Program(t, replica.APIServer)
	realtest.Inside(t, func(t *testing.T) { inside(t, startCluster(t)) })
}

// realCluster is an etcd and an apiserver, as a master runs them.
type realCluster struct {
	in        controlplane.Input
	bundle    *certs.Bundle
	admin     client.Client
	apiServer supervisor.Spec
	process   *exec.Cmd
}

func startCluster(t *testing.T) *realCluster {
	loopbackUp(t)
	dir := t.TempDir()
	c := &realCluster{in: controlplane.Input{
		Identity: replica.Identity{Place: replica.Place{Zone: "us-central1-b", Name: "master-2"},
			Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.12")}},
		Cluster: &replica.Cluster{Name: "prod", Endpoint: replica.Endpoint{ExternalIP: "203.0.113.10"},
			Components: map[string]replica.Component{
				replica.APIServer: {Binary: realtest.Program(t, replica.APIServer)}}},
		Files:  certs.Files{Dir: filepath.Join(dir, "pki"), Volatile: filepath.Join(dir, "volatile")},
		LogDir: dir, RunDir: dir,
	}}
	c.in.Cluster.SetDefaults()
	var err error
	if c.bundle, err = certs.NewBundle("6f1c1c4e-0000-4000-8000-000000000001", time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := certs.Ensure(certs.Request{Files: c.in.Files, Bundle: c.bundle, Identity: c.in.Identity,
		Cluster: c.in.Cluster, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if c.in.Encryption, _, err = certs.EncryptionConfig(c.in.Files, true); err != nil {
		t.Fatal(err)
	}
	specs, configs, err := controlplane.Components(c.in)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range configs {
		if err := os.WriteFile(f.Path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.apiServer = specs[0]
	leaf := c.in.Files.Leaf(certs.EtcdServer)
	start(t, dir, realtest.Program(t, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"),
		"--listen-client-urls=https://127.0.0.1:2379", "--advertise-client-urls=https://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync", "--log-level=error", "--cert-file="+leaf,
		"--key-file="+leaf, "--client-cert-auth", "--trusted-ca-file="+c.in.Files.CA(certs.EtcdClient))
	c.startAPIServer(t)
	c.admin = c.administrator(t)
	return c
}

func loopbackUp(t *testing.T) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	own := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 240, 0, 12), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrAdd(lo, own); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, dir, path string, args ...string) *exec.Cmd {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(dir, filepath.Base(path)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the last lines of %s:\n%s", log.Name(), text[max(0, len(text)-2000):])
		}
	})
	return cmd
}

func (c *realCluster) startAPIServer(t *testing.T) {
	c.process = start(t, c.in.LogDir, c.apiServer.Path, c.apiServer.Args...)
	eventually(t, "the apiserver is ready", 3*time.Minute, func() error { return c.apiServer.Ready.Check(t.Context()) })
}

func (c *realCluster) killAPIServer() {
	c.process.Process.Kill()
	c.process.Wait()
}

func (c *realCluster) administrator(t *testing.T) client.Client {
	kubeconfig, err := certs.AdminKubeconfig(c.bundle, c.in.Cluster, "https://127.0.0.1:443", 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	admin, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// grant lets the manager's identity do what its role says for some folders.
func (c *realCluster) grant(t *testing.T, folders ...string) {
	t.Helper()
	role := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "quorate:addons"}}
	for _, folder := range folders {
		rules, _ := Rules(folder)
		text, err := json.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		var more []rbacv1.PolicyRule
		if err := json.Unmarshal(text, &more); err != nil {
			t.Fatal(err)
		}
		role.Rules = append(role.Rules, more...)
	}
	binding := rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "quorate:addons"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "quorate:addons"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "quorate:addons"}}}
	for _, o := range []client.Object{&role, &binding} {
		if err := c.admin.Create(t.Context(), o.DeepCopyObject().(client.Object)); err == nil {
			continue
		} else if !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if err := c.admin.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond) // the authorizer hears of it by a watch
}

// proxy is a way to the apiserver, as the managers' identity, on which a test can stand. It answers a request itself
// with a status that is not 0. The result is a kubeconfig.
func (c *realCluster) proxy(t *testing.T, answer func(*http.Request) int) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.in.Files.Kubeconfig(certs.Addons))
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := answer(r); code != 0 {
			http.Error(w, http.StatusText(code), code)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x}}]\n" +
		"clusters: [{name: x, cluster: {server: '" + server.URL + "'}}]\n"
	return filepath.Join(writeFolder(t, t.TempDir(), map[string]string{"kubeconfig": text}), "kubeconfig")
}

// running is a manager under test.
type running struct {
	socket string
	log    *safeBuffer
	stop   func()
}

var fast = Pace{Resync: time.Second, Poll: 100 * time.Millisecond, Write: 2 * time.Second}

// manage runs a manager of a folder until the test ends, or stop is called.
func (c *realCluster) manage(t *testing.T, name, folder string, pace Pace) *running {
	t.Helper()
	return c.manageBy(t, name, folder, c.in.Files.Kubeconfig(certs.Addons), pace)
}

func (c *realCluster) manageBy(t *testing.T, name, folder, kubeconfig string, pace Pace) *running {
	t.Helper()
	dir, err := os.MkdirTemp("", "addons") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	r := &running{socket: filepath.Join(dir, "s"), log: &safeBuffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{Log: slog.New(slog.NewTextHandler(r.log, nil)), Folder: folder,
			Kubeconfig: kubeconfig, Replica: name, Socket: r.socket, Pace: pace})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the manager of %s ended: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("the manager of %s does not end", name)
		}
		os.RemoveAll(dir)
		if t.Failed() {
			t.Logf("the log of %s:\n%s", name, r.log.tail())
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *running) status() (s plan.Status, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s, local.Call(ctx, r.socket, "GET", "/status", &s)
}

// becomes waits until the status is as it should be.
func (r *running) becomes(t *testing.T, what string, ok func(plan.Status) bool) plan.Status {
	t.Helper()
	var s plan.Status
	eventually(t, what, 90*time.Second, func() (err error) {
		if s, err = r.status(); err == nil && !ok(s) {
			text, _ := json.Marshal(s)
			err = fmt.Errorf("the status is %s", text)
		}
		return err
	})
	return s
}

func allInPlace(n int) func(plan.Status) bool {
	return func(s plan.Status) bool { return s.Standing == plan.Current && s.InPlace == n && s.Objects == n }
}

func eventually(t *testing.T, what string, limit time.Duration, ask func() error) {
	t.Helper()
	until := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// reset removes the inventory, so that the next test begins anew.
func (c *realCluster) reset(t *testing.T) {
	t.Helper()
	inventory := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: plan.InventoryNamespace,
		Name: plan.InventoryName}}
	if err := client.IgnoreNotFound(c.admin.Delete(t.Context(), inventory)); err != nil {
		t.Fatal(err)
	}
}

func (c *realCluster) configMap(t *testing.T, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	var cm corev1.ConfigMap
	err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &cm)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &cm
}

// events are the Events of a reason in a namespace.
func (c *realCluster) events(t *testing.T, namespace, reason string) (out []string) {
	t.Helper()
	var list corev1.EventList
	if err := c.admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Reason == reason && e.Source.Component == plan.FieldOwner {
			out = append(out, e.InvolvedObject.Kind+" "+e.InvolvedObject.Name+": "+e.Message)
		}
	}
	return out
}

// request is one line of the audit log.
type request struct{ verb, uri string }

// requests are those of the managers since a position in the audit log, and the position behind them.
func (c *realCluster) requests(t *testing.T, since int64) (out []request, end int64) {
	t.Helper()
	return c.requestsBy(t, since, "quorate-addons")
}

// requestsBy are those of programs whose user agent begins with a name.
func (c *realCluster) requestsBy(t *testing.T, since int64, agent string) (out []request, end int64) {
	t.Helper()
	f, err := os.Open(filepath.Join(c.in.LogDir, "kube-apiserver-audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(since, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(whole) {
		var e struct{ Verb, RequestURI, Stage, UserAgent string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(e.UserAgent, agent) && e.Stage == "ResponseComplete" {
			out = append(out, request{e.Verb, e.RequestURI})
		}
	}
	return out, since + int64(len(whole))
}

// writesOf are the requests that write, or would; dry runs are counted apart.
func writesOf(list []request) (writes, dryRuns []request) {
	for _, r := range list {
		if !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.verb) {
			continue
		}
		if u, err := url.Parse(r.uri); err == nil && u.Query().Get("dryRun") != "" {
			dryRuns = append(dryRuns, r)
		} else {
			writes = append(writes, r)
		}
	}
	return writes, dryRuns
}

// writeFolder writes files into a folder, by their paths.
func writeFolder(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func namespaceYAML(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
}

func configMapYAML(namespace, name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %q, name: %q}\ndata: {key: %q}\n",
		namespace, name, value)
}

// safeBuffer is a log that several goroutines write.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(s.b.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
