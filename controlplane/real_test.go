package controlplane

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// TestRealControlPlane starts the real etcd, kube-apiserver, kube-scheduler and kube-controller-manager with the very
// command lines that a replica gets, and asks them from outside.
func TestRealControlPlane(t *testing.T) {
	withRealPrograms(t, realControlPlane, "etcd", replica.APIServer, replica.Scheduler, replica.ControllerManager)
}

// withRealPrograms runs the calling test again in a network and pid namespace of its own, and there what is inside: the
// ports are those of production, whatever else this machine runs, and no process outlives the test.
func withRealPrograms(t *testing.T, inside func(*testing.T), names ...string) {
	if testing.Short() {
		t.Skip("starts real programs; not with -short")
	}
	for _, name := range names {
		realtest.Program(t, name)
	}
	realtest.Inside(t, inside)
}

// plane is the running control plane under test.
type controlPlane struct {
	in    Input
	admin *http.Client // of system:masters
	base  string
	// adminConfig is admin's.
	adminConfig *rest.Config
	// issuer is whose users are let in, where addAccess was called.
	issuer *issuer
}

func realControlPlane(t *testing.T) {
	p := controlPlane{in: realInput(t), base: "https://127.0.0.1:443"}
	addAddresses(t, p.in.Identity.Addresses)
	p.addAccess(t)
	p.enter(t)
	startEtcd(t, p.in)
	specs := p.specs(t, true)
	for _, s := range specs {
		if err := CheckBinary(t.Context(), s, KubernetesMinor); err != nil {
			t.Fatal(err)
		}
	}
	var running []*process
	for _, s := range specs {
		running = append(running, startProcess(t, s))
	}
	t.Run("anonymous requests reach health and nothing else", p.testAnonymous)
	t.Run("old TLS is refused", p.testTLS)
	t.Run("the excluded checks exist", p.testExcludes)
	t.Run("default/kubernetes lists this replica's own address", p.testEndpoints)
	t.Run("both elect a leader with the profile's timing", p.testLeases)
	t.Run("secrets are encrypted in etcd", p.testEncryption)
	t.Run("the audit log has who did what, and no health", p.testAudit)
	t.Run("a kubelet's certificate is signed", p.testSigning)
	t.Run("a worker joins with a token", p.testWorkerJoins)
	t.Run("a token may do nothing else, and expires", p.testTokenMayDoNothingElse)
	t.Run("an issuer's users are let in", p.testIssuer)
	t.Run("webhooks add to Node and RBAC", p.testWebhooks)
	for _, r := range slices.Backward(running) {
		r.stop(t)
	}
}

// specs are the components of a replica that encrypts or does not, their files written.
func (p controlPlane) specs(t *testing.T, encrypt bool) []supervisor.Spec {
	t.Helper()
	p.in.Cluster.EncryptionAtRest = &encrypt
	var err error
	if p.in.Encryption, _, err = certs.EncryptionConfig(p.in.Files, encrypt); err != nil {
		t.Fatal(err)
	}
	specs, files, err := Components(p.in)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return specs
}

// enter makes the replica's files, and an administrator's clients.
func (p *controlPlane) enter(t *testing.T) {
	p.adminConfig = ensureCertificates(t, p.in)
	var err error
	if p.admin, err = rest.HTTPClientFor(p.adminConfig); err != nil {
		t.Fatal(err)
	}
}

// ensureCertificates makes the replica's files as an agent does, and returns an administrator's way in.
func ensureCertificates(t *testing.T, in Input) *rest.Config {
	now := time.Now()
	bundle, err := certs.NewBundle("6f1c1c4e-0000-4000-8000-000000000001", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certs.Ensure(certs.Request{Files: in.Files, Bundle: bundle, Identity: in.Identity, Cluster: in.Cluster,
		Now: now}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := certs.AdminKubeconfig(bundle, in.Cluster, "https://127.0.0.1:443", 0, now)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// realInput is the input of a replica whose folders are the test's.
func realInput(t *testing.T) Input {
	dir := t.TempDir()
	in := representative()
	in.Identity.Addresses = []netip.Addr{netip.MustParseAddr("10.240.0.12")}
	in.Files = certs.Files{Dir: filepath.Join(dir, "pki"), Volatile: filepath.Join(dir, "volatile")}
	in.LogDir, in.RunDir = filepath.Join(dir, "log"), filepath.Join(dir, "run")
	for _, d := range []string{in.LogDir, in.RunDir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	in.OtherEtcd, in.Cluster.Addons = nil, replica.Addons{}
	in.Cluster.Components = map[string]replica.Component{}
	for _, name := range []string{replica.APIServer, replica.Scheduler, replica.ControllerManager} {
		in.Cluster.Components[name] = replica.Component{Binary: realtest.Program(t, name)}
	}
	in.Cluster.SetDefaults()
	return in
}

// addAddresses brings loopback up and gives the namespace the replica's addresses.
func addAddresses(t *testing.T, addresses []netip.Addr) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if err := netlink.AddrAdd(lo,
			&netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}); err != nil {
			t.Fatal(err)
		}
	}
}

// startEtcd starts a member that listens where a replica's own does.
func startEtcd(t *testing.T, in Input) {
	leaf, ca := in.Files.Leaf(certs.EtcdServer), in.Files.CA(certs.EtcdClient)
	startProcess(t, supervisor.Spec{
		Name: "etcd", Path: realtest.Program(t, "etcd"),
		Args: []string{
			"--data-dir=" + t.TempDir(), "--listen-client-urls=" + localEtcd, "--advertise-client-urls=" + localEtcd,
			"--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync", "--log-level=warn",
			"--cert-file=" + leaf, "--key-file=" + leaf, "--client-cert-auth", "--trusted-ca-file=" + ca,
			"--enable-grpc-gateway=false",
		},
	})
}

// process is one running program.
type process struct {
	spec supervisor.Spec
	cmd  *exec.Cmd
	log  string
}

// startProcess starts a program and waits until its probes pass, as a supervisor would.
func startProcess(t *testing.T, s supervisor.Spec) *process {
	t.Helper()
	p := &process{spec: s, log: filepath.Join(t.TempDir(), s.Name+".log")}
	f, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.cmd = exec.Command(s.Path, s.Args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(os.Environ(), s.Env...), f, f
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		if log, err := os.ReadFile(p.log); t.Failed() && err == nil {
			t.Logf("the last lines of %s:\n%s", s.Name, log[max(0, len(log)-3000):])
		}
	})
	for _, probe := range []*supervisor.Probe{s.Start, s.Ready, s.Live} {
		if probe != nil {
			eventually(t, s.Name, probe.Check)
		}
	}
	t.Logf("%s is ready after %s", s.Name, time.Since(begun).Round(10*time.Millisecond))
	return p
}

// kill ends the program at once.
func (p *process) kill() {
	p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
}

// stop asks the program to end, which it must do in time and well.
func (p *process) stop(t *testing.T) {
	begun := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(p.spec.StopTimeout, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	err := p.cmd.Wait()
	t.Logf("%s has stopped after %s: %v", p.spec.Name, time.Since(begun).Round(10*time.Millisecond), err)
	if time.Since(begun) >= p.spec.StopTimeout {
		t.Errorf("%s had to be killed", p.spec.Name)
	}
	// kube-controller-manager has no graceful end: SIGTERM kills it.
	if err != nil && p.spec.Name != replica.ControllerManager {
		t.Errorf("%s: %v", p.spec.Name, err)
	}
}

// eventually asks until the answer is no error. The limit is for a machine that is busy with much else.
func eventually(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
