package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/replica"
)

// Where quorate's agent keeps its files in a VM. The floor's etcd and logs are there too; what is ready-made is in
// floorDir.
const (
	dataDir = "/var/lib/quorate"
	runDir  = "/run/quorate"
	logDir  = "/var/log/quorate"
	// floorDir shows the floor its arguments, floorPrograms what reads them and the etcd that it starts.
	floorDir, floorPrograms = "/srv/floor", "/srv/floor-programs"
)

// floorStagger is between the starts of two members of the floor. Members of a cluster that is configured beforehand
// ask each other whether they have been there before, while none of them answers yet: started at the same moment they
// waited a second for each of the others (server/etcdserver/cluster_util.go), 2.3 s in all. The floor is the best that
// can be done by hand.
const floorStagger = 60 * time.Millisecond

// etcdHealth is answered after a read through the quorum.
const etcdHealth = "http://127.0.0.1:2381/health"

// buildFloor compiles the program that starts the floor in a VM, and its etcd.
func (b *bench) buildFloor(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", b.floorPrograms()+"/",
		"./test/bench/floor", "./test/bench/etcd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build floor (run this in the repository's root): %w: %s", err, out)
	}
	return nil
}

// floorPrograms is where buildFloor puts them on this machine.
func (b *bench) floorPrograms() string { return filepath.Join(b.dir, "floor-programs") }

// floorWorld is the world in which everything is ready-made: each VM finds its certificates, configuration files and
// command lines. It runs what /readyz needs.
func (b *bench) floorWorld(_ context.Context, n int) (*world, error) {
	return b.floorWith(n, subnet)
}

// wholeFloorWorld is one that runs the rest of the control plane too, beside another project.
func (b *bench) wholeFloorWorld(n int) (*world, error) {
	return b.floorWith(n, besideSubnet, replica.ControllerManager, replica.Scheduler)
}

// floorWith is a floor in a range that runs these components besides etcd and the apiserver.
func (b *bench) floorWith(n int, in netip.Prefix, others ...string) (*world, error) {
	w, err := b.newWorld("floor", n)
	if err != nil {
		return nil, err
	}
	w.subnet = in
	cluster, err := replica.Load(replica.Source{Name: "floor", Data: []byte(document(w.conf(), ""))})
	if err != nil {
		return nil, err
	}
	bundle, err := certs.NewBundle("floor", time.Now())
	if err != nil {
		return nil, err
	}
	files := filepath.Join(w.dir, "floor")
	for i, p := range places[:n] {
		dir := filepath.Join(files, p.Name)
		address := addressOf(in, i)
		id := replica.Identity{Place: p, InstanceID: "1", Project: "quorate-local", ProjectNumber: projectNumber,
			Addresses: []netip.Addr{address}} // the instance's id is in no certificate and in no flag
		if err := writeFloor(dir, id, cluster, bundle, in, n); err != nil {
			return nil, fmt.Errorf("prepare the floor of %s: %w", p.Name, err)
		}
		texts := map[string]string{"delay": (time.Duration(i) * floorStagger).String()}
		if len(others) > 0 {
			texts["others"], texts["ready"] = strings.Join(others, "\n"), "https://"+address.String()+"/readyz"
		}
		for name, text := range texts {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return nil, err
			}
		}
	}
	for name, text := range map[string]string{"health": etcdHealth, "endpoint": endpointIn(in).String()} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	// One link for all VMs: each finds its own folder by its name.
	w.binds = append(w.binds, localgce.Bind{Host: files, Guest: floorDir, ReadOnly: true},
		localgce.Bind{Host: b.floorPrograms(), Guest: floorPrograms, ReadOnly: true})
	w.agent.Command = []string{floorPrograms + "/floor", floorDir}
	return w, nil
}

// writeFloor writes what one VM of the floor needs: certificates, the components' files, and the command lines.
func writeFloor(dir string, id replica.Identity, cluster *replica.Cluster, bundle *certs.Bundle, in netip.Prefix,
	n int) error {
	made := certs.Files{Dir: filepath.Join(dir, "pki"), Volatile: filepath.Join(dir, "volatile")}
	for _, d := range []string{made.Dir, made.Volatile, filepath.Join(dir, "run")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if _, err := certs.Ensure(certs.Request{Files: made, Bundle: bundle, Identity: id, Cluster: cluster,
		Now: time.Now()}); err != nil {
		return err
	}
	for _, leaf := range []certs.Leaf{certs.ControllerManager, certs.Scheduler} {
		if err := moveKubeconfig(made.Kubeconfig(leaf), dir, filepath.Join(floorDir, id.Name)); err != nil {
			return err
		}
	}
	// The same flags as quorate's, but for the folders of what is ready-made.
	here := certs.Files{Dir: filepath.Join(floorDir, id.Name, "pki"), Volatile: filepath.Join(floorDir, id.Name,
		"volatile")}
	encryption, _, err := certs.EncryptionConfig(made, *cluster.EncryptionAtRest)
	if err != nil {
		return err
	}
	specs, extra, err := controlplane.Components(controlplane.Input{
		Identity: id, Cluster: cluster, Files: here, Encryption: encryption, Signing: true, LogDir: logDir,
		RunDir: filepath.Join(floorDir, id.Name, "run"),
	})
	if err != nil {
		return err
	}
	for _, f := range extra {
		if err := os.WriteFile(filepath.Join(dir, "run", filepath.Base(f.Path)), f.Data, 0o600); err != nil {
			return err
		}
	}
	lines := map[string][]string{"etcd.args": etcdArgs(id, cluster, here, in, n)}
	for _, s := range specs {
		lines[s.Name+".args"] = append([]string{s.Path}, s.Args...)
	}
	return writeArgs(dir, lines)
}

// moveKubeconfig makes a kubeconfig name its certificates where the VM sees them.
func moveKubeconfig(path, from, to string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600)
}

func writeArgs(dir string, files map[string][]string) error {
	for name, args := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(args, "\n")+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// etcdArgs is etcd's command line with the settings of quorate's member (member.Config), and a membership
// that is known beforehand.
func etcdArgs(id replica.Identity, cluster *replica.Cluster, files certs.Files, in netip.Prefix, n int) []string {
	address := id.Address().String()
	var members []string
	for i, p := range places[:n] {
		members = append(members, fmt.Sprintf("%s=https://%s:2380", p.Name, addressOf(in, i)))
	}
	return []string{floorPrograms + "/etcd",
		"--name=" + id.Name, "--data-dir=" + dataDir + "/etcd",
		"--listen-peer-urls=https://" + address + ":2380", "--initial-advertise-peer-urls=https://" + address + ":2380",
		"--listen-client-urls=https://" + address + ":2379,https://127.0.0.1:2379", "--advertise-client-urls=https://" +
			address + ":2379",
		"--listen-client-http-urls=https://127.0.0.1:2382", "--listen-metrics-urls=http://127.0.0.1:2381",
		"--initial-cluster=" + strings.Join(members, ","), "--initial-cluster-state=new",
		"--initial-cluster-token=floor",
		"--peer-cert-file=" + files.Leaf(certs.EtcdPeerLeaf), "--peer-key-file=" + files.Leaf(certs.EtcdPeerLeaf),
		"--peer-trusted-ca-file=" + files.CA(certs.EtcdPeer), "--peer-client-cert-auth",
		"--cert-file=" + files.Leaf(certs.EtcdServer), "--key-file=" + files.Leaf(certs.EtcdServer),
		"--trusted-ca-file=" + files.CA(certs.EtcdClient), "--client-cert-auth",
		"--tls-min-version=TLS1.2", "--enable-grpc-gateway=false",
		"--heartbeat-interval=" + strconv.FormatInt(cluster.Etcd.Heartbeat.Duration().Milliseconds(), 10),
		"--election-timeout=" + strconv.FormatInt(cluster.Etcd.Election.Duration().Milliseconds(), 10),
		"--quota-backend-bytes=" + strconv.FormatInt(cluster.Etcd.QuotaBytes, 10),
		"--snapshot-catchup-entries=" + strconv.FormatUint(cluster.Etcd.CatchUpEntries, 10),
		// As kube-up and kubeadm have it. It wakes etcd and the apiserver for each of 58 watches.
		"--watch-progress-notify-interval=5s",
		"--feature-gates=CompactHashCheck=true", "--corrupt-check-time=8h",
	}
}
