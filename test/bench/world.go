package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/replica"
)

// projectNumber is every project's.
const projectNumber = "271828182845"

// The ranges are not the demo's, so that a demo may run during a benchmark. The second is for a project that runs
// beside another.
var subnet, besideSubnet = subnetOf(247), subnetOf(249)

// subnetOf is 10.B.0.0/24.
func subnetOf(b byte) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, b}), 24) }

// addressIn is the address of a range that ends with a number.
func addressIn(r netip.Prefix, last byte) netip.Addr {
	b := r.Addr().As4()
	b[3] = last
	return netip.AddrFrom4(b)
}

// endpointIn is the load balancer's address, addressOf that of the nth VM.
func endpointIn(r netip.Prefix) netip.Addr { return addressIn(r, 100) }

func addressOf(r netip.Prefix, n int) netip.Addr { return addressIn(r, byte(11+n)) }

// places are where the VMs are.
var places = []replica.Place{{Zone: "us-central1-a", Name: "master-a"}, {Zone: "us-central1-b", Name: "master-b"},
	{Zone: "us-central1-c", Name: "master-c"}}

// world is one round's project: its folder, what its VMs see, and what they run.
type world struct {
	dir      string
	subnet   netip.Prefix
	n        int // replicas
	binds    []localgce.Bind
	agent    localgce.Agent
	diskSize int64 // of each data disk, in bytes; 0: localgce's own
	// kind, image and cache are what the VMs are, and of systemd VMs what they boot. They have no kubelet.
	kind         localgce.Kind
	image, cache string
	// likeGoogle: the Compute API and the bucket take the time that Google's take. Else they answer at once.
	likeGoogle bool
	// beforeBucket, if not nil, counts what is asked of the bucket.
	beforeBucket func(http.Handler) http.Handler
	// attributes are the instance attributes of every VM.
	attributes map[string]string
}

// bench is what all rounds share.
type bench struct {
	flags
	dir   string
	count int // rounds so far, for the names of their folders
}

// newWorld makes the folder of a round.
func (b *bench) newWorld(kind string, n int) (*world, error) {
	b.count++
	dir := filepath.Join(b.dir, fmt.Sprintf("%02d-%s-%d", b.count, kind, n))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &world{dir: dir, subnet: subnet, n: n,
		binds: []localgce.Bind{{Host: b.bin, Guest: "/usr/local/bin", ReadOnly: true}}}, nil
}

// document is the Cluster document of a project; more are further lines of it.
func document(conf localgce.Config, more string) string {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	at := conf.Subnet.Addr().Next()
	return fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: bench
replicas: %d
endpoint:
  externalIP: %s
record:
  url: gs://%s?endpoint=http://%s:8080
seal:
  key: base64key://%s
compute:
  endpoint: http://%s:8080/compute/v1/
etcd:
  dataDisk: %s
%s`, len(conf.VMs), conf.Endpoint, localgce.BucketName, at, base64.URLEncoding.EncodeToString(key), at,
		localgce.DeviceName, more)
}

// quorateWorld is the world of a first boot: a record that has begun, and nothing else.
func (b *bench) quorateWorld(ctx context.Context, n int) (*world, error) {
	return b.documentedWorld(ctx, n, "")
}

// documentedWorld is one with further lines of the document.
func (b *bench) documentedWorld(ctx context.Context, n int, more string) (*world, error) {
	w, err := b.newWorld("quorate", n)
	if err != nil {
		return nil, err
	}
	if b.vms == localgce.SystemdVMs {
		boots, err := b.bootImage()
		if err != nil {
			return nil, err
		}
		w.kind, w.image, w.cache = boots.Kind, boots.Image, boots.Cache
	}
	conf := w.conf()
	if err := b.begin(ctx, w.dir, &conf, more); err != nil {
		return nil, err
	}
	w.attributes = conf.Attributes
	return w, nil
}

// bootImage is the part of a configuration that says what systemd VMs boot.
func (b *bench) bootImage() (conf localgce.Config, err error) {
	if err := conf.BootImage(b.image); err != nil {
		return conf, err
	}
	if _, err := os.Stat(conf.Image); err != nil {
		return conf, fmt.Errorf("%w; make image makes it", err)
	}
	return conf, nil
}

// begin writes the document of a project into a folder and its attributes, and begins the record that it names.
func (b *bench) begin(ctx context.Context, dir string, conf *localgce.Config, more string) error {
	text := document(*conf, more)
	file := filepath.Join(dir, "cluster.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	url, stop, err := buckets.Serve(filepath.Dir(conf.BucketFolder()))
	if err != nil {
		return err
	}
	defer stop()
	begin := exec.CommandContext(ctx, filepath.Join(b.bin, "quorate"), "record", "init", "--config", file, "--record",
		url, "--region", "us-central1", "--project-number", projectNumber)
	if out, err := begin.CombinedOutput(); err != nil {
		return fmt.Errorf("begin the record: %w: %s", err, out)
	}
	conf.Attributes = map[string]string{"quorate-cluster": text}
	return nil
}

// conf is the project's.
func (w *world) conf() localgce.Config {
	conf := localgce.Config{
		State: filepath.Join(w.dir, "state"), Cluster: "bench", Prompt: !w.likeGoogle, Subnet: w.subnet,
		Endpoint:     endpointIn(w.subnet),
		BeforeBucket: w.beforeBucket,
		DiskSize:     w.diskSize, Attributes: w.attributes, Agent: w.agent, Binds: w.binds,
	}
	if w.kind == localgce.SystemdVMs {
		conf.Kind, conf.Image, conf.Cache, conf.Masked = w.kind, w.image, w.cache, localgce.KubeletUnits()
	}
	for i, p := range places[:w.n] {
		conf.VMs = append(conf.VMs, localgce.VMConfig{Name: p.Name, Zone: p.Zone, Address: addressOf(w.subnet, i)})
	}
	return conf
}

// start boots the VMs of the world.
func (w *world) start(ctx context.Context) (*localgce.Project, error) {
	return localgce.Start(ctx, w.conf())
}
