package etcdmember

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/restoredir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// machine is one VM for the tests of the acting side: its disk, its etcd child, the record that it shares with others,
// and the power that can be cut at every step. What it checks at each write are the promises of the membership page.
type machine struct {
	t       *testing.T
	me      replica.Identity
	cluster *replica.Cluster
	dir     string // the VM's: data disk, run folder, hosts
	record  *etcdtest.Record
	child   *imitation
	power   *power
	compute etcdtest.Compute
	made    restoredir.Job // the last directory that was made for a restore
	config  func(*Config)  // what a test wants otherwise
	log     *slog.Logger
}

func newMachine(t *testing.T, p replica.Place, r *etcdtest.Record) *machine {
	t.Helper()
	smallLogs()
	dir, err := os.MkdirTemp("", "q")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	me := replica.Identity{Place: p, InstanceID: "101", BootID: "boot1", ProjectNumber: "7",
		Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.10")}}
	m := &machine{
		t: t, me: me, dir: dir, record: r, power: &power{}, log: slog.New(slog.DiscardHandler),
		cluster: &replica.Cluster{Name: testCluster, Replicas: 3,
			Etcd: replica.Etcd{DataDir: filepath.Join(dir, "data")}},
		compute: etcdtest.Compute{{Place: p, InstanceID: me.InstanceID, Status: "RUNNING", Addresses: me.Addresses}},
	}
	for _, d := range []string{"data", "run"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.child = &imitation{machine: m}
	t.Cleanup(func() { m.child.Stop(context.Background()) })
	return m
}

func (m *machine) etcdDir() string { return filepath.Join(m.dir, "data", "etcd") }

// smallLogs keeps the files of a log small: 64 MiB of zeros for each take time.
var smallLogs = sync.OnceFunc(func() { wal.SegmentSizeBytes = 64 << 10 })

// open is what the agent does at its start.
func (m *machine) open() *Membership {
	cfg := Config{
		Log: m.log, Me: m.me, Cluster: m.cluster, RunDir: filepath.Join(m.dir, "run"), HostsFile: filepath.Join(m.dir,
			"hosts"), DiskID: onDisk("d1"),
		Record: etcdtest.Reached{Record: m.record, Write: m.power.write}, Compute: m.compute, Child: m.child,
		AtStep:        m.power.atStep,
		MakeDirectory: m.makeDirectory,
	}
	if m.config != nil {
		m.config(&cfg)
	}
	ms := New(cfg)
	*ms.files = files{
		write: func(path string, data []byte, perm fs.FileMode) error {
			return m.power.write("write "+filepath.Base(path), func() error {
				if filepath.Base(path) == "agent.json" {
					m.checkAgent(data)
				}
				return durable.WriteFile(path, data, perm)
			})
		},
		rename: func(from, to string) error {
			return m.power.write("rename", func() error { return durable.Rename(from, to) })
		},
		remove: func(path string) error {
			return m.power.write("remove "+filepath.Base(path), func() error { return os.Remove(path) })
		},
	}
	ms.own.served = func(ctx context.Context) (record.MemberID, record.MemberID, error) {
		s, err := ms.Status(ctx)
		return s.ClusterID, s.MemberID, err
	}
	return ms
}

// boot runs the two loops of a boot and reports whether the power was cut in them. The bundle is there once its maker
// is known.
func (m *machine) boot(ms *Membership) (wasCut bool, err error) {
	m.power.booting = true
	defer func() {
		m.power.booting = false
		switch p := recover().(type) {
		case nil:
		case cut:
			wasCut = true
			m.child.Stop(context.Background()) // nothing outlives the agent
		default:
			panic(p)
		}
	}()
	ctx, cancel := context.WithTimeout(m.t.Context(), etcdtest.Patience)
	defer cancel()
	if !ms.Established() {
		makesBundle, err := ms.Claim(ctx)
		if err != nil {
			return false, fmt.Errorf("claim: %w; blocked: %+v", err, ms.cfg.Waits.All())
		}
		m.record.Change(func(v *record.View) {
			if formed := record.NumberOf(v.NewestFormed()); makesBundle && (v.Bundle > 0 || formed > 0) {
				m.t.Errorf("it is to make a bundle, the record has generation %d, and epoch %d was formed", v.Bundle,
					formed)
			}
		})
	}
	m.record.Change(func(v *record.View) { v.Bundle = 1 })
	if err := ms.Settle(ctx); err != nil {
		return false, fmt.Errorf("settle: %w; blocked: %+v", err, ms.cfg.Waits.All())
	}
	return false, nil
}

// checkAgent is called before agent.json is written.
func (m *machine) checkAgent(data []byte) {
	var a table.AgentFile
	if err := json.Unmarshal(data, &a); err != nil {
		m.t.Errorf("agent.json: %v", err)
		return
	}
	if a.Phase == table.PhaseStarted && m.record.Formed(a.Epoch) == nil {
		m.t.Errorf("agent.json says started in epoch %d, which the record does not say was formed", a.Epoch)
	}
	if a.Incarnation == 0 {
		return
	}
	i := m.record.Incarnation(m.me.Place, a.Incarnation)
	if i == nil || i.InstanceID != a.InstanceID || i.BootID != a.BootID {
		m.t.Errorf("agent.json names incarnation %d of instance %s, boot %s; the record has %+v", a.Incarnation,
			a.InstanceID, a.BootID, i)
	}
}

// checkStart is called before the child starts: what may be started is what the record and the disk allow.
func (m *machine) checkStart(c member.Config) {
	a, err := datadir.LoadAgentFile(filepath.Join(m.dir, "data", "agent.json"))
	if err != nil {
		m.t.Errorf("start: %v", err)
	}
	i := m.record.Incarnation(m.me.Place, a.Incarnation)
	formed := m.record.Formed(a.Epoch)
	logged := wal.Exist(datadir.LogDir(c.Dir))
	switch {
	case c.Dir != m.etcdDir():
		m.t.Errorf("it starts on %s", c.Dir)
	case a.Phase == table.PhaseSeeding:
		if i == nil || formed != nil || !m.record.ClaimedBy(a.Epoch, a.Token, m.me.Place) || c.New &&
			c.Token != a.Token || !c.New && !logged {
			m.t.Errorf("it seeds with %+v, agent.json %+v, incarnation %+v, formed %v", c, a, i, formed)
		}
	case a.Phase != table.PhaseStarted || formed == nil || c.New:
		m.t.Errorf("it starts in phase %q of an epoch that is formed: %v, new: %t", a.Phase, formed != nil, c.New)
	case i == nil || i.Started == nil || i.Started.MemberID != a.MemberID:
		m.t.Errorf("it starts member %s without a confirmed incarnation: %+v", a.MemberID, i)
	case !logged && (c.MemberID != a.MemberID || len(c.InitialCluster) < 2):
		m.t.Errorf("it joins as %s with %+v, agent.json says %s", c.MemberID, c.InitialCluster, a.MemberID)
	}
}

// cut is the panic by which the power goes.
type cut struct{}

// power counts the steps and goes at one of them, before it takes effect or right after. A step whose write fails has
// no after: it goes at the next one then.
type power struct {
	when, n int // 0: never
	after   bool
	at      acts.Step // at which it went
	step    acts.Step // that is being taken
	writes  int       // of this step
	seen    map[acts.Step]bool
	booting bool // every write belongs to a step, and is its only one
}

// atStep is the hook.
func (p *power) atStep(s acts.Step, when acts.Moment) {
	if p.seen == nil {
		p.seen = map[acts.Step]bool{}
	}
	p.step, p.seen[s] = s, true
	if when == acts.Before {
		p.n, p.writes = p.n+1, 0
	} else {
		p.step = ""
	}
	if p.when > 0 && p.n >= p.when && p.after == (when == acts.After) {
		p.at, p.step = s, ""
		panic(cut{})
	}
}

// write is how all that lasts is written.
func (p *power) write(name string, do func() error) error {
	if p.booting && p.step == "" {
		panic("a write outside of every step: " + name)
	}
	if p.writes++; p.booting && p.writes > 1 {
		panic("a second write in step " + string(p.step) + ": " + name)
	}
	return do()
}

// moment is where it went.
func (p *power) moment() cutAt {
	if p.after {
		return cutAt{p.at, acts.After}
	}
	return cutAt{p.at, acts.Before}
}

// imitation is an etcd child without etcd: it makes a real log and a real database, and answers on the status socket as
// a member that leads.
type imitation struct {
	machine *machine
	mu      sync.Mutex // tests ask whether it runs while an agent starts it
	stop    func()
	starts  int
	dead    bool                      // it exits at once
	ended   string                    // how it did
	alone   []table.Member            // it is one of these, and knows no leader; none: it leads itself alone
	say     func(*table.MemberStatus) // what it says of itself in addition
	asked   url.Values                // what the last question for its status named
}

func (c *imitation) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stop != nil
}

func (c *imitation) Ended() string { return c.ended }

// started is how often it was.
func (c *imitation) started() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts
}

func (c *imitation) Stop(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	return nil
}

func (c *imitation) Start(ctx context.Context, path string) error {
	c.Stop(ctx)
	return c.machine.power.write("start etcd", func() error {
		cfg, err := member.LoadConfig(path)
		if err != nil {
			return err
		}
		c.machine.checkStart(cfg)
		c.mu.Lock()
		c.starts++
		c.mu.Unlock()
		if c.dead {
			return nil
		}
		return c.run(cfg)
	})
}

func (c *imitation) run(cfg member.Config) error {
	s := table.MemberStatus{MemberID: cfg.MemberID, ClusterID: 0xc1, Ready: true, Term: 2, Committed: 3, Applied: 3}
	if cfg.New {
		s.MemberID = idOf(cfg.Token)
	}
	if err := makeDirectory(cfg.Dir, &s); err != nil {
		return err
	}
	if s.Members = c.alone; c.alone == nil {
		s.Leader = s.MemberID
	}
	os.Remove(cfg.StatusSocket)
	l, err := net.Listen("unix", cfg.StatusSocket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		c.mu.Lock()
		c.asked = r.URL.Query()
		c.mu.Unlock()
		said := s
		if c.say != nil {
			c.say(&said)
		}
		json.NewEncoder(w).Encode(said)
	})}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = func() { server.Close(); <-done }
	return nil
}

// makeDirectory makes etcd's directory with a log of the member, or reads whose it is.
func makeDirectory(dir string, s *table.MemberStatus) error {
	if wal.Exist(datadir.LogDir(dir)) {
		d, err := datadir.Read(dir)
		s.MemberID, s.ClusterID = d.MemberID, d.ClusterID
		return errors.Join(err, d.OpenErr)
	}
	if err := makeLog(dir, s.MemberID, s.ClusterID); err != nil {
		return err
	}
	w, err := openLog(dir)
	if err != nil {
		return err
	}
	if _, _, _, err := w.ReadAll(); err != nil {
		return errors.Join(err, w.Close())
	}
	term, index := uint64(2), uint64(1)
	entry := &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Term: &term, Index: &index}
	return errors.Join(w.Save(&raftpb.HardState{Term: &term, Commit: &index}, []*raftpb.Entry{entry}), w.Close())
}

// makeLog makes a directory with an empty database and a log without an entry.
func makeLog(dir string, member, of record.MemberID) error {
	id, cluster := uint64(member), uint64(of)
	meta, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: &id, ClusterID: &cluster})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(datadir.DatabaseFile(dir)), 0o700); err != nil {
		return err
	}
	db, err := bbolt.Open(datadir.DatabaseFile(dir), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		return err
	}
	w, err := wal.Create(zap.NewNop(), datadir.LogDir(dir), meta)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return errors.Join(w.Close(), db.Close())
}

// openLog opens a log to append to it. Another test may start a program in a network of its own meanwhile. Until that
// program runs it has every file of this process, so a log that was just closed is still locked for some milliseconds.
func openLog(dir string) (*wal.WAL, error) {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		w, err := wal.Open(zap.NewNop(), datadir.LogDir(dir), &walpb.Snapshot{Index: new(uint64), Term: new(uint64)})
		if !errors.Is(err, fileutil.ErrLocked) || time.Since(began) > time.Minute {
			return w, err
		}
	}
}

// addVoters appends entries to a stopped member's log that made members voters, all committed.
func addVoters(dir string, ids ...record.MemberID) error {
	w, err := openLog(dir)
	if err != nil {
		return err
	}
	defer w.Close()
	_, state, entries, err := w.ReadAll()
	if err != nil {
		return err
	}
	term, last := state.GetTerm(), entries[len(entries)-1].GetIndex()
	var more []*raftpb.Entry
	for _, id := range ids {
		last++
		index, node := last, uint64(id)
		data, err := proto.Marshal(&raftpb.ConfChange{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: &node})
		if err != nil {
			return err
		}
		more = append(more, &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Term: &term, Index: &index, Data: data})
	}
	return w.Save(&raftpb.HardState{Term: &term, Commit: &last}, more)
}

// onDisk is the id of the data disk; empty: it is not known.
func onDisk(id string) func() string { return func() string { return id } }

// blockedName is the name of the one wait that is shown; empty: there is none.
func blockedName(ms *Membership) string {
	var names []string
	for _, b := range ms.cfg.Waits.All() {
		names = append(names, b.Name)
	}
	return strings.Join(names, " ")
}
