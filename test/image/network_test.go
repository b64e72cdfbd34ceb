package image

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/compute"
	cloud "github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/metadata"
)

// The addresses are those of a subnet of GCE; the machine's own comes by DHCP.
const (
	cluster  = "image"
	gateway  = "10.240.0.1"
	address  = "10.240.0.11"
	endpoint = "10.240.0.100"
	hardware = "42:01:0a:f0:00:0b"
	services = gateway + ":8080"
)

// network is a network namespace with one link, tap0, for an emulated machine. Google's services answer in it: DHCP,
// the metadata server, the Compute API and a bucket. Other programs reach the machine from here.
type network struct {
	dir      string
	instance cloud.VM
	metadata *metadata.Server
	calls    chan func()
}

// dhcp is GCE's answer: the address alone on its link, and the way to all else through the gateway. udhcpd is
// busybox's.
const dhcp = `interface tap0
start %[1]s
end %[1]s
lease_file %[2]s/leases
pidfile %[2]s/udhcpd.pid
opt subnet 255.255.255.255
opt router %[3]s
opt staticroutes %[3]s/32 0.0.0.0, 0.0.0.0/0 %[3]s
opt dns 169.254.169.254
opt mtu 1460
opt hostname %[4]s.us-central1-a.c.%[5]s.internal
opt domain us-central1-a.c.%[5]s.internal
opt lease 86400
`

// newNetwork makes the network of an instance. It is gone when the test ends.
func newNetwork(t *testing.T, instance cloud.VM) *network {
	t.Helper()
	n := newSilentNetwork(t, instance)
	n.serveDHCP(t)
	return n
}

// newSilentNetwork makes one that gives no address yet.
func newSilentNetwork(t *testing.T, instance cloud.VM) *network {
	t.Helper()
	n := &network{dir: t.TempDir(), instance: instance, metadata: metadata.New(instance),
		calls: make(chan func())}
	go func() {
		// The thread ends with this goroutine, because it is never unlocked: no other gets its network.
		runtime.LockOSThread()
		for call := range n.calls {
			call()
		}
	}()
	t.Cleanup(func() { close(n.calls) })
	served, err := buckets.Open(filepath.Join(n.dir, "buckets"), nil)
	if err != nil {
		t.Fatal(err)
	}
	computeAPI := compute.New(compute.Config{Instances: func() []cloud.VM { return []cloud.VM{instance} }})
	n.do(t, func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	for _, args := range []string{"link set lo up", "tuntap add dev tap0 mode tap", "link set tap0 mtu 1460 up",
		"addr add " + gateway + "/24 dev tap0", "addr add 169.254.169.254/32 dev tap0",
		"route add " + endpoint + " via " + address} {
		n.must(t, "ip", strings.Fields(args)...)
	}
	n.serve(t, services, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/compute/") {
			computeAPI.ServeHTTP(w, r)
			return
		}
		served.ServeHTTP(w, r)
	}))
	return n
}

// serveDHCP begins to give the instance its address.
func (n *network) serveDHCP(t *testing.T) {
	t.Helper()
	conf := filepath.Join(n.dir, "udhcpd.conf")
	text := fmt.Sprintf(dhcp, address, n.dir, gateway, n.instance.Name, cloud.ProjectID)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "leases"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.start(t, exec.Command(busybox(t), "udhcpd", "-f", conf))
}

// serveMetadata begins to answer for the metadata server, which may be late.
func (n *network) serveMetadata(t *testing.T) {
	t.Helper()
	n.serve(t, "169.254.169.254:80", n.metadata)
}

// busybox is the one that test/guest/make.sh took from Debian's package.
func busybox(t *testing.T) string {
	t.Helper()
	path := program(t, "guest/busybox")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no DHCP server: make guest (%v)", err)
	}
	return path
}

// program is the path of one that make has built.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// initRecord begins the record of the instance's cluster, and says where its document is.
func (n *network) initRecord(t *testing.T) (document string) {
	t.Helper()
	document = filepath.Join(n.dir, "cluster.yaml")
	if err := os.WriteFile(document, []byte(n.instance.Attributes["quorate-cluster"]), 0o600); err != nil {
		t.Fatal(err)
	}
	n.must(t, program(t, "quorate"), "record", "init", "--config", document, "--region", "us-central1",
		"--project-number", fmt.Sprint(cloud.ProjectNumber))
	return document
}

// report is what the machine's replica has last told in the bucket; empty before it has.
func (n *network) report(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(n.dir, "buckets", "*", "*.reports", "replicas", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all string
	for _, path := range paths {
		text, _ := os.ReadFile(path) // the next look reads one that is being exchanged
		all += string(text)
	}
	return all
}

// do calls f in the network.
func (n *network) do(t *testing.T, f func() error) {
	t.Helper()
	done := make(chan error)
	n.calls <- func() { done <- f() }
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// start starts a program in the network. It is killed when the test ends, however that comes.
func (n *network) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.do(t, cmd.Start)
	t.Cleanup(func() { cmd.Process.Kill() })
}

// try runs a program in the network and says what it printed.
func (n *network) try(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	n.do(t, cmd.Start)
	err := cmd.Wait()
	return out.String(), err
}

// must runs a program in the network that must succeed.
func (n *network) must(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := n.try(t, program, args...)
	if err != nil {
		t.Fatalf("%s %v: %v: %s", program, args, err, out)
	}
	return out
}

// serve answers at an address of the network until the test ends.
func (n *network) serve(t *testing.T, at string, handler http.Handler) {
	t.Helper()
	var listener net.Listener
	n.do(t, func() (err error) {
		listener, err = net.Listen("tcp", at)
		return err
	})
	server := &http.Server{Handler: handler}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
}

// masterA is the instance whose network newNetwork makes.
func masterA() cloud.VM {
	return cloud.VM{Name: "master-a", Zone: "us-central1-a", ID: 1, Status: "RUNNING",
		Address: netip.MustParseAddr(address), Forwarded: []netip.Addr{netip.MustParseAddr(endpoint)},
		Attributes: map[string]string{"quorate-cluster": aDocument()},
		Labels:     map[string]string{gce.ClusterLabel: cluster}, Created: time.Now(),
		DataDisk: cloud.Disk{ID: 2, Name: "master-a-data", Bytes: dataSize}}
}
