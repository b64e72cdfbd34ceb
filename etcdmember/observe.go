package etcdmember

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

const (
	// askTimeout is how long one address may take to answer; membership.md section 2.
	askTimeout = 2 * time.Second
	// handshakeTimeout is how long a member that accepts connections may take to begin to speak TLS. It takes some 5 ms.
	handshakeTimeout = 700 * time.Millisecond
	// enoughGrace is how long the others may still take once one has answered through quorum: nothing that they say
	// changes what is decided, only what is shown.
	enoughGrace = 150 * time.Millisecond
	// listPeriod is the time between two lists of the Compute API that prove a death.
	listPeriod = 10 * time.Second
	// listTimeout bounds one list: while nothing is formed everybody waits for it.
	listTimeout = 5 * time.Second
)

// observe reads everything that a decision needs. It never fails: what could not be read is a fact too.
func (m *Membership) observe(ctx context.Context) Facts {
	f := Facts{
		Now: time.Now(), Me: m.cfg.Me, Cluster: m.cfg.Cluster.Name, DiskID: m.cfg.DiskID,
		Disk: m.diskFacts(), Agent: m.agent, AgentErr: m.agentErr,
		EtcdVersion: version.Version, StartAnyway: m.cfg.StartAnyway, StrangerSince: m.strangerSince,
		Policy: Policy{Replicas: m.cfg.Cluster.Replicas, Restore: m.cfg.Cluster.Restore},
	}
	f.Directory = m.observeDirectory(ctx)
	f.Record, f.RecordErr = m.cfg.Record.View(ctx)
	if f.RecordErr == nil {
		m.noteEpoch(f.Record)
		f.Agent = m.agent
		m.keepHosts(f.Record)
	}
	formed := f.RecordErr == nil && newestOutcomeFormed(f.Record)
	if !f.Directory.Running || !formed {
		m.listCompute(ctx, !formed)
	}
	f.Compute = m.compute
	f.Answers = m.ask(ctx, m.addresses(f.Record, !formed))
	for _, a := range f.Answers {
		if a.Version != "" {
			f.ClusterVersion = a.Version
		}
	}
	if !formed && m.cfg.Preflight != nil && !f.Directory.Running {
		f.Preflight = m.cfg.Preflight(ctx)
	}
	return f
}

// observeDirectory reads the directory once and again only after something was done to it: reading a log of gigabytes at
// each look would make every wait slow.
func (m *Membership) observeDirectory(ctx context.Context) Directory {
	if m.keeping || m.cfg.Child.Running() { // between two starts of a kept child, the supervisor has the directory in hand
		m.directory = nil
		d := Directory{Running: true, Exists: true, MemberID: m.agent.MemberID}
		if s, err := m.Status(ctx); err == nil {
			d.MemberID, d.ClusterID, d.Term, d.Commit = s.MemberID, s.ClusterID, s.Term, s.Committed
			for _, e := range s.Members {
				if e.Learner {
					d.Learners = append(d.Learners, e.ID)
				} else {
					d.Voters = append(d.Voters, e.ID)
				}
			}
		}
		d.Marker = m.marked()
		return d
	}
	if m.directory == nil {
		// One that waits to be started again would write while we read.
		if err := m.cfg.Child.Stop(ctx); err != nil {
			return Directory{Exists: true, ReadErr: err}
		}
		d, err := readDir(m.etcdDir())
		if err != nil {
			return Directory{Exists: true, ReadErr: err}
		}
		m.directory = &d
	}
	return *m.directory
}

func (m *Membership) marked() bool {
	_, err := os.Stat(filepath.Join(m.etcdDir(), commitMarker))
	return err == nil
}

// noteEpoch writes the newest epoch that was seen into agent.json: a record that is later found below it has been rolled back.
func (m *Membership) noteEpoch(v record.View) {
	ours := m.agent.Replica == m.cfg.Me.Place && v.Inception != nil && m.agent.ClusterUID == v.Inception.UID
	if len(v.Epochs) == 0 || m.agentErr != nil || !ours {
		return
	}
	newest := v.Epochs[len(v.Epochs)-1].Number
	if newest > m.agent.NewestEpoch {
		if err := m.setAgent(func(a *AgentFile) { a.NewestEpoch = newest }); err != nil {
			m.cfg.Log.Warn("note the newest epoch", "err", err.Error())
		}
	}
}

func newestOutcomeFormed(v record.View) bool {
	n := len(v.Epochs)
	return n > 0 && v.Epochs[n-1].Outcome != nil && v.Epochs[n-1].Outcome.Formed != nil
}

// keepHosts writes the peers' names into /etc/hosts: the newest incarnation of each place says where it is.
func (m *Membership) keepHosts(v record.View) {
	peers := []replica.Peer{{Place: m.cfg.Me.Place, InstanceID: m.cfg.Me.InstanceID, Addresses: m.cfg.Me.Addresses}}
	for place, incarnations := range v.Replicas {
		if n := len(incarnations); n > 0 && place != m.cfg.Me.Place {
			peers = append(peers, replica.Peer{Place: place, Addresses: incarnations[n-1].Addresses})
		}
	}
	changed, err := writeHosts(m.cfg.HostsFile, m.cfg.Cluster.Name, peers)
	if err != nil {
		m.cfg.Log.Warn("keep the hosts file", "err", err.Error())
	} else if changed {
		m.cfg.Log.Info("hosts file changed", "peers", len(peers))
	}
}

// listCompute lists what exists, at most once a listPeriod. Where nothing is formed, the first list is waited for.
func (m *Membership) listCompute(ctx context.Context, needed bool) {
	if !needed && m.compute.Second.Time.IsZero() && m.agent.Phase == PhaseStarted {
		return // a reboot with a disk waits for no cloud service
	}
	if time.Since(m.compute.Second.Time) < listPeriod && (m.compute.Second.Err == nil || !needed) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	l := Listing{Time: time.Now()}
	vms, err := m.cfg.Compute.VMs(ctx)
	l.Err = err
	for _, vm := range vms {
		l.Instances = append(l.Instances, Instance{Place: vm.Place, InstanceID: vm.InstanceID, Status: vm.Status})
	}
	l.Disks, l.DisksErr = m.cfg.Compute.DiskIDs(ctx)
	if m.compute.Second.Err == nil && !m.compute.Second.Time.IsZero() {
		m.compute.First = m.compute.Second
	}
	m.compute.Second = l
	m.vms = vms
}

// target is one address to ask, and who should be there.
type target struct {
	replica.Place
	instanceID string
	address    netip.Addr
}

// addresses are those of the newest incarnation of each place, the own one only while the own member runs, and, while nothing
// is formed, of every VM of this cluster that the Compute API lists.
func (m *Membership) addresses(v record.View, all bool) []target {
	var out []target
	for place, incarnations := range v.Replicas {
		n := len(incarnations)
		if n == 0 || place == m.cfg.Me.Place || len(incarnations[n-1].Addresses) == 0 {
			continue
		}
		out = append(out, target{place, incarnations[n-1].InstanceID, incarnations[n-1].Addresses[0]})
	}
	if m.cfg.Child.Running() {
		out = append(out, target{m.cfg.Me.Place, m.cfg.Me.InstanceID, m.cfg.Me.Address()})
	}
	if !all {
		return out
	}
	for _, vm := range m.vms {
		known := slices.ContainsFunc(out, func(t target) bool { return len(vm.Addresses) == 0 || t.address == vm.Addresses[0] })
		if vm.Place != m.cfg.Me.Place && !known {
			out = append(out, target{vm.Place, vm.InstanceID, vm.Addresses[0]})
		}
	}
	return out
}

// ask asks all addresses at once, each by itself.
func (m *Membership) ask(ctx context.Context, targets []target) []Answer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var tlsConfig *tls.Config
	if m.cfg.TLS != nil {
		tlsConfig = m.cfg.TLS()
	}
	out := make([]Answer, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			out[i] = m.askOne(ctx, t, tlsConfig)
			if out[i].Reach == ReachLinearizable {
				time.AfterFunc(enoughGrace, cancel)
			}
		})
	}
	wg.Wait()
	return out
}

func (m *Membership) askOne(ctx context.Context, t target, tlsConfig *tls.Config) Answer {
	a := Answer{Place: t.Place, InstanceID: t.instanceID, Address: t.address}
	// First a plain connection: gRPC would go on trying a port that refuses.
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(t.address, ClientPort).String())
	if err != nil {
		return a
	}
	defer conn.Close()
	a.Reach = ReachTCP
	name := t.DNSName(m.cfg.Cluster.Name)
	if tlsConfig == nil || !m.shakesHands(ctx, conn, named(tlsConfig, name)) {
		return a
	}
	c, err := dial(name, t.address, tlsConfig)
	if err != nil {
		return a
	}
	defer c.Close()
	if id, list, err := members(ctx, c); err == nil {
		a.Reach, a.ClusterID, a.Members = ReachLinearizable, id, list
	}
	if st, err := c.Status(ctx, ClientURL(name)); err == nil {
		a.Reach = max(a.Reach, ReachAnswers)
		a.ClusterID, a.Version = record.MemberID(st.Header.GetClusterId()), st.Version
	}
	return a
}

// shakesHands reports whether the member behind an accepted connection serves at all. One that waits for a leader listens, and says
// nothing: waiting the whole askTimeout for it would make every step of a boot without quorum take that long.
func (m *Membership) shakesHands(ctx context.Context, conn net.Conn, c *tls.Config) bool {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	return tls.Client(conn, c).HandshakeContext(ctx) == nil
}

// named is a client configuration for one member: the certificate must be that member's, whatever the address.
func named(c *tls.Config, dnsName string) *tls.Config {
	c = c.Clone()
	c.ServerName = dnsName
	return c
}

// diskFacts tells whether the configured data disk is mounted at the data directory.
func (m *Membership) diskFacts() DiskFacts {
	d := DiskFacts{Wanted: m.cfg.Cluster.Etcd.DataDisk}
	if d.Wanted == "" {
		return d
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return d
	}
	d.Mounted = mountedAt(string(mounts), m.cfg.Cluster.Etcd.DataDir)
	return d
}

// mountedAt looks for a mount point in the format of /proc/self/mountinfo (proc(5)): the fifth field.
func mountedAt(mountinfo, dir string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == dir {
			return true
		}
	}
	return false
}
