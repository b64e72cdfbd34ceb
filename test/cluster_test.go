package test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/localgce/buckets"
)

const (
	projectNumber = "271828182845"
	// patience is how long anything may take that has to come by itself. It is generous: machines under test are busy,
	// and what is measured is logged, not asserted.
	patience = 2 * time.Minute
)

// plan says which cluster a scenario wants.
type plan struct {
	vms []string // each in a zone of its own
	// spot is the one of them that is a Spot VM.
	spot string
	// always: `make test` has it too, which shows in five minutes that the parts fit. The others are `make cases`.
	always bool
	// replicas is what the Cluster document asks for: as many as there are VMs where it is 0.
	replicas int
	programs string // another folder than the common one
	// bare: the cluster is about its members alone. A stand-in takes the apiserver's place, and nothing else runs.
	bare bool
	// reflink: disks can be torn by a copy. diskSize is in bytes: 2 GiB where it is 0.
	reflink  bool
	diskSize int64
	// etcd is a further line for the document's etcd section, addons the line of its add-ons.
	etcd, addons string
	// components is the document's section of that name. binds are further folders of the host in every VM.
	components string
	binds      []localgce.Bind
	// more are further lines of the document.
	more string
	// agent: the unit is another than the image's.
	agent localgce.Agent
	// image: the VMs boot the baked image, whatever the kind of the others. asBaked: with its own programs.
	// containerImages is a folder with those of the example add-ons.
	image, asBaked  bool
	containerImages string
	// noKubelet: the image's kubelet and runtime stay off, as they do where bare.
	noKubelet bool
	// namesAndTime: DNS and NTP answer at the metadata server's address.
	namesAndTime bool
	// machine: one of the VMs has a kernel and a clock of its own.
	machine *machine
	// images are those that the Compute API has.
	images []localgce.Image
	// zones are those that the project has; nil: those that have VMs.
	zones []string
	// noRecord: the operator has not begun the record. noAttribute: the VMs have no Cluster document yet.
	noRecord, noAttribute bool
	// age: the record was begun so long ago.
	age time.Duration
}

// cluster is a GCE project with masters in it, and the operator's view of it: a configuration, the record, a
// kubeconfig.
type cluster struct {
	*localgce.Project
	plan
	conf     localgce.Config
	subnet   int // its network is 10.251.<subnet>.0/25
	programs string
	state    string // the folder of all files
	document string // the Cluster document
	told     bool   // a case has told of its failure

	clientTLS *tls.Config  // of clients of etcd, once there is one
	moves     atomic.Int32 // addresses that VMs were given
}

// subnets counts the clusters of this run: each has a network of its own, also next to one that is being taken away.
var subnets atomic.Int32

// begin starts a cluster's VMs and takes all of it away at the test's end.
func begin(t *testing.T, p plan) *cluster {
	t.Helper()
	if !p.always {
		onlyInCases(t)
	}
	c := &cluster{plan: p, subnet: 1 + int(subnets.Add(1))%250, programs: p.programs, state: t.TempDir()}
	switch {
	case p.bare && p.programs == "":
		c.programs = casePrograms(t)
	case p.bare: // its own copy, which it may change
		c.must(t, share(casePrograms(t), c.programs, "quorate", "kube-apiserver"))
	case p.programs == "":
		c.programs = programs(t)
	}
	c.document = c.write(p)
	c.must(t, os.WriteFile(c.configFile(), []byte(c.document), 0o600))
	c.conf = c.project()
	if p.image || vmKind == localgce.SystemdVMs {
		c.bootImage(t, &c.conf)
	}
	if !p.noRecord {
		c.initRecord(t)
	}
	c.open(t)
	return c
}

// open starts the project. It is called again where a scenario has closed it.
func (c *cluster) open(t *testing.T) {
	t.Helper()
	c.conf.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	project, err := localgce.Start(t.Context(), c.conf)
	c.must(t, err)
	c.Project = project
	t.Cleanup(func() {
		if !c.told {
			c.tell(t)
		}
		if err := c.shut(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// shut closes the project, if it is open.
func (c *cluster) shut() error {
	if c.Project == nil {
		return nil
	}
	err := c.Close(context.Background())
	c.Project = nil
	return err
}

func (c *cluster) write(p plan) string {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	if p.replicas == 0 {
		p.replicas = len(p.vms)
	}
	etcd, components := "", p.components
	if p.etcd != "" {
		etcd = "  " + p.etcd + "\n"
	}
	if p.bare {
		components = "components: {kube-scheduler: {enabled: false}, kube-controller-manager: {enabled: false}}\n"
	}
	if p.more != "" {
		components += p.more + "\n"
	}
	return fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: test
replicas: %d
endpoint:
  externalIP: 10.251.%d.100
record:
  url: gs://record?endpoint=http://10.251.%d.1:8080
seal:
  key: base64key://%s
compute:
  endpoint: http://10.251.%d.1:8080/compute/v1/
etcd:
  dataDisk: quorate-data
%s%s%s`, p.replicas, c.subnet, c.subnet, base64.URLEncoding.EncodeToString(key), c.subnet, etcd, components,
		p.addons)
}

func (c *cluster) project() localgce.Config {
	conf := localgce.Config{
		State: filepath.Join(c.state, "project"), Cluster: "test", Prompt: !likeGoogle(),
		Subnet:   netip.MustParsePrefix(fmt.Sprintf("10.251.%d.0/25", c.subnet)),
		DiskSize: cmp.Or(c.diskSize, 2<<30), Reflink: c.reflink,
		Attributes: map[string]string{agent.ClusterAttribute: c.document},
		Agent:      localgce.Agent{Watchdog: 30 * time.Second},
	}
	if !c.asBaked {
		conf.Binds = []localgce.Bind{{Host: c.programs, Guest: "/usr/local/bin", ReadOnly: true}}
	}
	conf.Binds = append(conf.Binds, c.binds...)
	if c.plan.agent.Command != nil {
		conf.Agent = c.plan.agent
	}
	if c.noAttribute {
		conf.Attributes = nil
	}
	conf.NamesAndTime, conf.Images, conf.Zones = c.namesAndTime, c.images, c.zones
	if c.containerImages != "" {
		conf.Binds = append(conf.Binds, localgce.Bind{Host: c.containerImages, Guest: "/usr/share/quorate/images",
			ReadOnly: true})
	}
	if c.machine != nil {
		conf.Agent.Command = []string{machineFolder + "/start"}
		conf.Binds = append(conf.Binds, localgce.Bind{Host: c.machine.folder, Guest: machineFolder, ReadOnly: true})
	}
	for i, name := range c.vms {
		conf.VMs = append(conf.VMs, localgce.VMConfig{Name: name, Zone: "us-central1-" + string(rune('a'+i)),
			Spot: name == c.spot})
	}
	return conf
}

// guest is a path in a VM that runs, as the host reaches it; diskOf is one on its data disk.
func (c *cluster) guest(vm, path string) string {
	return fmt.Sprintf("/proc/%d/root%s", c.vm(vm).InitPID, path)
}
func (c *cluster) diskOf(vm, path string) string { return c.guest(vm, "/var/lib/quorate/"+path) }

// record is the folder with the record's objects, as files.
func (c *cluster) record() string     { return filepath.Join(c.conf.BucketFolder(), "test") }
func (c *cluster) configFile() string { return filepath.Join(c.state, "cluster.yaml") }
func (c *cluster) kubeconfig() string { return filepath.Join(c.state, "admin.kubeconfig") }
func (c *cluster) endpoint() string   { return fmt.Sprintf("10.251.%d.100", c.subnet) }

// must ends the test on an error.
func (c *cluster) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// quorate runs the operator's command on the host.
func (c *cluster) quorate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append(args, "--config", c.configFile())
	return run(exec.CommandContext(t.Context(), filepath.Join(c.programs, "quorate"), args...))
}

// initRecord is the operator's word that this cluster begins here.
func (c *cluster) initRecord(t *testing.T) {
	t.Helper()
	begin := func(more ...string) error {
		args := []string{"record", "init", "--region", "us-central1", "--project-number", projectNumber}
		_, err := c.quorate(t, append(args, more...)...)
		return err
	}
	if c.Project != nil {
		c.must(t, begin())
		return
	}
	url, stop, err := buckets.Serve(filepath.Dir(c.conf.BucketFolder()))
	c.must(t, err)
	defer stop()
	c.must(t, begin("--record", url))
	if c.age > 0 {
		c.ageRecord(t)
	}
}

// ageRecord makes a record that has just begun one that has existed for a while.
func (c *cluster) ageRecord(t *testing.T) {
	t.Helper()
	path := filepath.Join(c.record(), "inception.json")
	b, err := os.ReadFile(path)
	c.must(t, err)
	var inception map[string]any
	c.must(t, json.Unmarshal(b, &inception))
	inception["time"] = time.Now().Add(-c.age).UTC().Truncate(time.Second)
	b, err = json.Marshal(inception)
	c.must(t, err)
	c.must(t, os.WriteFile(path, b, 0o644))
}

// kubectl runs kubectl as the administrator; server is an address, or empty for the endpoint.
func (c *cluster) kubectl(t *testing.T, server string, args ...string) (string, error) {
	t.Helper()
	if server == "" {
		server = c.endpoint()
	}
	args = append([]string{"--kubeconfig", c.kubeconfig(), "--server", "https://" + server, "--request-timeout", "10s"},
		args...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.programs, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "HOME="+c.state) // its cache
	return run(cmd)
}

// mustKubectl is kubectl that has to succeed.
func (c *cluster) mustKubectl(t *testing.T, server string, args ...string) string {
	t.Helper()
	out, err := c.kubectl(t, server, args...)
	c.must(t, err)
	return out
}

// in runs a shell script in a VM, which has to succeed.
func (c *cluster) in(t *testing.T, vm, script string) string {
	t.Helper()
	cmd, err := c.Command(t.Context(), vm, "sh", "-c", script)
	c.must(t, err)
	out, err := run(cmd)
	c.must(t, err)
	return out
}

// run returns what a command prints; its error holds what it complained of.
func run(cmd *exec.Cmd) (string, error) {
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s%s", strings.Join(cmd.Args, " "), err, out, complaint.String())
	}
	return string(out), err
}

// await polls until ok returns nil, and fails with its last word.
func await(t *testing.T, what string, ok func() error) {
	t.Helper()
	awaitWithin(t, patience, what, ok)
}

func awaitWithin(t *testing.T, limit time.Duration, what string, ok func() error) {
	t.Helper()
	since := time.Now()
	for {
		err := ok()
		if err == nil {
			t.Logf("%s: after %s", what, time.Since(since).Round(10*time.Millisecond))
			return
		}
		if time.Since(since) > limit || t.Context().Err() != nil {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
