package ringtest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// The environment by which a test's own program is told to be one member.
const (
	memberEnv = "QUORATE_TEST_MEMBER" // the member's configuration
	hostsEnv  = "QUORATE_TEST_HOSTS"  // its hosts file
	otherEnv  = "QUORATE_TEST_OTHER"  // the version that the member says it is; empty: its own
)

// TestAMemberInAProcessOfItsOwn is no test: it is `quorate run-etcd` for the members of a ring.
func TestAMemberInAProcessOfItsOwn(t *testing.T) {
	path := os.Getenv(memberEnv)
	if path == "" {
		t.Skip("it is started by the tests that need real members")
	}
	net.DefaultResolver = hosts.Resolver(os.Getenv(hostsEnv))
	version.Version = cmp.Or(os.Getenv(otherEnv), version.Version)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, err := member.LoadConfig(path)
	if err == nil {
		err = member.Run(ctx, cfg, slog.New(slog.DiscardHandler))
	}
	if errors.Is(err, member.ErrStalled) {
		// as run-etcd does: etcd of a stalled member cannot be closed
		err = syscall.Exec(os.Args[0], os.Args, os.Environ())
	}
	switch {
	case errors.Is(err, member.ErrRemoved):
		os.Exit(member.RemovedExitCode)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ring is a cluster of real members, each in a process of its own on an address of loopback, and of their real
// agents, which share a record in memory. There is no VM and no disk of its own.
type ring struct {
	t       *testing.T
	dir     string
	hosts   string
	record  *etcdtest.Record
	vms     etcdtest.Compute
	change  func(*member.Config) // what a test wants otherwise
	history time.Duration        // what a compaction leaves; 0: as in production
	agents  map[replica.Place]*agent
	bundle  *certs.Bundle

	mu   sync.Mutex
	cuts map[string]bool // the steps at which an agent has yet to end, once each
	hold *heldStep       // the step at which an agent is held up, once
}

// agent is one replica's agent, which a test begins and ends.
type agent struct {
	ring    *ring
	me      replica.Identity
	cluster *replica.Cluster
	dir     string // the VM's: data disk, run folder, certificates
	log     *slog.Logger
	files   certs.Files
	tls     *tls.Config
	local   netip.Addr
	child   *processChild
	end     func()
	cut     func() // ends this life
	deaf    bool   // it is not told what its member acknowledged

	mu   sync.Mutex
	life *life
}

// life is one of an agent's, which ends where a step is cut.
type life struct {
	*etcdmember.Membership
	waits *waits.Tracker
}

func newRing(t *testing.T, places ...replica.Place) *ring {
	t.Helper()
	r := &ring{t: t, record: etcdtest.NewRecord(testCluster), agents: map[replica.Place]*agent{}}
	dir, err := os.MkdirTemp("", "ring")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r.dir, r.hosts = dir, filepath.Join(dir, "hosts")
	if r.bundle, err = certs.NewBundle("uid", time.Now()); err != nil {
		t.Fatal(err)
	}
	for i, p := range places {
		r.add(p, i)
	}
	return r
}

// add makes a replica; it does not run yet.
func (r *ring) add(p replica.Place, i int) {
	r.t.Helper()
	dir, err := os.MkdirTemp("", "q") // short: the name of a unix socket is
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { os.RemoveAll(dir) })
	a := &agent{ring: r, dir: dir, me: replica.Identity{Place: p, InstanceID: fmt.Sprint(101 + i), BootID: "boot1",
		Project: "p", ProjectNumber: "7", Addresses: []netip.Addr{etcdtest.Address(i)}},
		cluster: &replica.Cluster{Name: testCluster, Replicas: 3, Etcd: replica.Etcd{DataDir: filepath.Join(dir, "data")}}}
	for _, d := range []string{"data", "run"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	for j := range etcdtest.Replicas {
		// On one machine a connection comes from the address that it goes to, and etcd compares that with the
		// certificate.
		if j != i {
			a.me.Addresses = append(a.me.Addresses, etcdtest.Address(j))
		}
	}
	a.local = netip.AddrFrom4([4]byte{127, 0, 2, byte(10 + i)})
	a.log = slog.New(slog.NewTextHandler(r.t.Output(), nil)).With("replica", p.Name)
	// Long enough for no leader to be lost on a machine that is busy: the tests say who leads.
	a.cluster.Etcd.Heartbeat, a.cluster.Etcd.Election = replica.Duration(250*time.Millisecond),
		replica.Duration(2500*time.Millisecond)
	a.cluster.Etcd.QuotaBytes, a.cluster.Etcd.CatchUpEntries = 2<<30, 5000
	a.child = &processChild{agent: a}
	a.issue()
	r.agents[p] = a
	r.vms = append(r.vms, replica.VM{Place: p, InstanceID: a.me.InstanceID, Status: "RUNNING",
		Addresses: a.me.Addresses[:1]})
}

// issue makes the replica's leaves.
func (a *agent) issue() {
	t := a.ring.t
	a.files = certs.Files{Dir: filepath.Join(a.dir, "pki"), Volatile: filepath.Join(a.dir, "volatile")}
	etcdtest.Issue(t, a.files, a.ring.bundle, a.me, etcdtest.Cluster(t, testCluster))
	var err error
	if a.tls, err = certs.EtcdTLS(a.files); err != nil {
		t.Fatal(err)
	}
}

// begin runs the agent: boot, keep, and again when it ends, as systemd would.
func (a *agent) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			err := a.live(ctx)
			if err != nil && ctx.Err() == nil {
				a.ring.t.Logf("agent of %s: %v", a.me.Place, err)
			}
			if errors.Is(err, errCut) {
				a.child.kill() // the member dies with an agent that dies
			}
			a.child.Stop(context.Background())
		}
	}()
	a.end = sync.OnceFunc(func() { cancel(); <-done })
	a.ring.t.Cleanup(func() { a.child.kill(); a.end() }) // members that stop in order wait for a quorum
}

// live is one life of the agent.
func (a *agent) live(ctx context.Context) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case cut:
			err = errCut
		default:
			panic(p)
		}
	}()
	w := waits.New(a.log, "")
	ms := etcdmember.New(etcdmember.Config{
		Log: a.log, Me: a.me, Cluster: a.cluster, RunDir: filepath.Join(a.dir, "run"), HostsFile: a.ring.hosts,
		DiskID: func() string { return "d1" }, Waits: w,
		Files: a.files, TLS: func() *tls.Config { return a.tls },
		Record:  etcdtest.Reached{Record: a.ring.record, Write: func(_ string, do func() error) error { return do() }},
		Compute: a.ring.vms, Child: a.child,
		AtStep: func(s acts.Step, when acts.Moment) { a.ring.cutAt(s, when, a) },
		Tests:  etcdmember.TestSettings{Local: a.local, History: a.ring.history, Deaf: a.deaf},
	})
	a.mu.Lock()
	a.life = &life{ms, w}
	a.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.child.removed, a.cut = func() { cancel(member.ErrRemoved) }, func() { cancel(errCut) }
	if !ms.Established() {
		if _, err := ms.Claim(ctx); err != nil {
			return err
		}
	}
	a.ring.record.Change(func(v *record.View) { v.Bundle = 1 })
	if err := ms.Settle(ctx); err != nil {
		return err
	}
	if err := ms.Keep(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// errCut ends an agent at a step.
var errCut = errors.New("cut at a step")

// cutAt ends the agent where a test wants it: at once, with nothing done after it. A background task ends with
// its goroutine.
func (r *ring) cutAt(s acts.Step, when acts.Moment, a *agent) {
	if s == acts.StepRemove && when == acts.Before {
		r.letEnd(cutAt{acts.StepMoveLeader, acts.After})
	}
	key := cutAt{s, when}.String()
	r.mu.Lock()
	wanted := r.cuts[key]
	delete(r.cuts, key)
	hold := r.hold
	r.mu.Unlock()
	hold.here(s, when)
	switch {
	case !wanted:
	case s == acts.StepCompact || s == acts.StepDefragment || s == acts.StepDefragmentOwn:
		a.cut()
		runtime.Goexit()
	default:
		panic(cut{})
	}
}

// letEnd lets an agent come to where it is to end, while another, which would take that from it, waits. It comes there
// or never does: the test says so.
func (r *ring) letEnd(at cutAt) {
	for begin := time.Now(); time.Since(begin) < etcdtest.Patience; {
		r.mu.Lock()
		left := r.cuts[at.String()]
		r.mu.Unlock()
		if !left {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// cutAll makes an agent end before and after each of the steps, once each: whoever comes there first.
func (r *ring) cutAll(steps []acts.Step) {
	r.cut(acts.Before, steps...)
	r.cut(acts.After, steps...)
}

func (r *ring) cut(when acts.Moment, steps ...acts.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cuts == nil {
		r.cuts = map[string]bool{}
	}
	for _, s := range steps {
		r.cuts[cutAt{s, when}.String()] = true
	}
}

// allCut says at which of them no agent has ended yet.
func (r *ring) allCut() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := slices.Sorted(maps.Keys(r.cuts)); len(left) > 0 {
		return fmt.Errorf("no agent ended %v", left)
	}
	return nil
}

// membership is of the agent's life; nil: it has not begun.
func (a *agent) membership() *life {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.life
}

// took is how often the agent took an act in its life, with an outcome.
func (a *agent) took(act table.Act, outcome string) (n uint64) {
	for _, s := range a.membership().Report(a.ring.t.Context()).Etcd.Steps {
		if s.Act == act && s.Outcome == outcome {
			n += s.Count
		}
	}
	return n
}

func (a *agent) etcdDir() string { return filepath.Join(a.dir, "data", "etcd") }

// begin starts agents and waits until all are voters.
func (r *ring) begin(places ...replica.Place) {
	r.t.Helper()
	for _, p := range places {
		r.agents[p].begin()
	}
	r.await("all are voters", func() error { return r.voters(places...) })
}

// voters says why the members are not these places, all of them voters that serve.
func (r *ring) voters(places ...replica.Place) error {
	for _, p := range places {
		s, err := r.status(p)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", p, err)
		case s.Leader == 0 || s.Learner || !s.Ready || len(s.Members) != len(places):
			return fmt.Errorf("%s: %+v", p, s)
		}
	}
	return nil
}

func (r *ring) status(p replica.Place) (table.MemberStatus, error) {
	return member.ReadStatus(r.t.Context(), member.SocketIn(filepath.Join(r.agents[p].dir, "run")))
}

// leader is the place that leads; the zero value: none is known.
func (r *ring) leader() replica.Place {
	for p := range r.agents {
		if s, err := r.status(p); err == nil && s.Leader == s.MemberID && s.Leader != 0 {
			return p
		}
	}
	return replica.Place{}
}

// client is one of one member.
func (r *ring) client(p replica.Place) *clientv3.Client {
	r.t.Helper()
	a := r.agents[p]
	c, err := member.Dial(a.me.DNSName(testCluster), a.me.Address(), a.tls)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// put writes through one member.
func (r *ring) put(c *clientv3.Client, key, value string) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Second)
	defer cancel()
	_, err := c.Put(ctx, key, value)
	return err
}

// blocked are the waits that a place shows.
func (r *ring) blocked(p replica.Place) (names []string) {
	if ms := r.agents[p].membership(); ms != nil {
		for _, b := range ms.waits.All() {
			names = append(names, b.Name)
		}
	}
	return names
}

// stays wants a condition to hold until the agent of a place has taken as many steps more. An observation is reported
// before its step is taken, so that the next one tells that it has been.
func (r *ring) stays(what string, p replica.Place, steps int, ok func() error) {
	r.t.Helper()
	holds := func() {
		r.t.Helper()
		if err := ok(); err != nil {
			r.t.Fatalf("%s: not any more: %v", what, err)
		}
	}
	observations := steps + 1
	var last time.Time
	r.await(what, func() error {
		holds()
		e := r.agents[p].membership().Report(r.t.Context()).Etcd.Explanation
		if e == nil {
			return errors.New("it has not observed yet")
		}
		at := e.At
		if e.Leader != nil {
			at = e.Leader.At
		}
		if !last.IsZero() && at.After(last) {
			observations--
		}
		if last = at; observations > 0 {
			return fmt.Errorf("it has yet to observe %d times", observations)
		}
		return nil
	})
	holds()
}

func (r *ring) await(what string, ok func() error) {
	r.t.Helper()
	begin := time.Now()
	var err error
	for time.Since(begin) < etcdtest.Patience {
		if err = ok(); err == nil {
			r.t.Logf("%s: after %s", what, time.Since(begin).Round(10*time.Millisecond))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	for p := range r.agents {
		s, err := r.status(p)
		r.t.Logf("%s: %+v, %v, blocked by %v", p, s, err, r.blocked(p))
		if ms := r.agents[p].membership(); ms != nil {
			if e := ms.Report(r.t.Context()).Etcd.Explanation; e != nil && e.Leader != nil {
				r.t.Logf("%s leads, and would %+v", p, e.Leader.Plan)
			}
		}
	}
	r.t.Fatalf("%s: never: %v", what, err)
}

// processChild runs a member in a process, and starts it again when it crashes, as the supervisor does.
type processChild struct {
	agent   *agent
	version string // what its member says it is; empty: what it is
	removed func() // the member was removed

	mu    sync.Mutex
	cmd   *exec.Cmd
	done  chan struct{}
	ended bool // by kill or Stop: its exit is no crash
	begun int  // times that it was started
}

func (c *processChild) starts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}

func (c *processChild) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

func (c *processChild) Ended() string { return "" }

func (c *processChild) Start(ctx context.Context, path string) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	cfg, err := member.LoadConfig(path)
	if err != nil {
		return err
	}
	if c.agent.ring.change != nil {
		c.agent.ring.change(&cfg)
	}
	if err := cfg.Save(path); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.launch(path)
}

// launch starts the process; c.mu is held.
func (c *processChild) launch(path string) error {
	cmd := exec.Command(os.Args[0], "-test.run=^TestAMemberInAProcessOfItsOwn$")
	cmd.Env = append(os.Environ(), memberEnv+"="+path, hostsEnv+"="+c.agent.ring.hosts, otherEnv+"="+c.version)
	output := filepath.Join(c.agent.dir, "etcd.log")
	log, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	done, removed := make(chan struct{}), c.removed
	c.cmd, c.done, c.ended = cmd, done, false
	c.begun++
	go func() {
		cmd.Wait()
		gone := cmd.ProcessState.ExitCode() == member.RemovedExitCode
		if gone {
			removed()
		}
		close(done)
		if gone {
			return
		}
		time.Sleep(restartPause)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ended || c.cmd != cmd {
			return
		}
		c.agent.log.Warn("the member crashed", "exit", cmd.ProcessState.String(), "output", lastLines(output, 20))
		if err := c.launch(path); err != nil {
			c.agent.log.Error("the member is not started again", "err", err)
		}
	}()
	return nil
}

// restartPause is the supervisor's first.
const restartPause = time.Second

// lastLines is how a file ends.
func lastLines(path string, n int) string {
	all, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(all)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// kill makes a running member exit at once.
func (c *processChild) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cmd != nil {
		c.cmd.Process.Kill()
	}
}

func (c *processChild) Stop(context.Context) error {
	c.mu.Lock()
	cmd, done := c.cmd, c.done
	c.ended = true
	c.mu.Unlock()
	if cmd == nil {
		return nil
	}
	cmd.Process.Signal(syscall.SIGTERM) // it may have exited
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		cmd.Process.Kill()
		<-done
	}
	return nil
}
