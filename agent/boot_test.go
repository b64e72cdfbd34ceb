package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

func TestABootThatCannotBeginSaysInWhichPhase(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*vm)
		want   error
		text   string
	}{
		"no configuration": {func(v *vm) { v.metadata.attributes = nil }, ErrNoConfiguration,
			`identity: no configuration: the instance has no attribute "quorate-cluster" and there is no `},
		"the metadata server gives up": {func(v *vm) { v.metadata.err = errBroken }, errBroken, "identity: broken"},
		"a field that is not known": {func(v *vm) { v.metadata.attributes[ClusterAttribute] += "nonsense: 1\n" }, nil,
			"identity: instance attribute quorate-cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVM(t)
			c.change(v)
			err := Run(t.Context(), v.config())
			var phase *PhaseError
			if !errors.As(err, &phase) || phase.Phase != PhaseIdentity || c.want != nil && !errors.Is(err, c.want) ||
				!strings.HasPrefix(err.Error(), c.text) {
				t.Errorf("%v", err)
			}
			if got := v.notify.all(); !slices.Equal(got, []string{"identity", "STOPPING", "stopping"}) {
				t.Errorf("the service manager heard %q", got)
			}
		})
	}
}

var errBroken = errors.New("broken")

func TestTheBakedDocumentIsEnough(t *testing.T) {
	v := newVM(t)
	v.metadata.attributes = nil
	if err := os.WriteFile(v.config().Baked, []byte(v.document), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, in := v.identified(); in.cluster.Name != "demo" {
		t.Errorf("cluster %q", in.cluster.Name)
	}
}

// A wait of a boot is in the status, and being told to stop in it is an end in order, at once.
func TestAWaitIsShownAndEndsInOrder(t *testing.T) {
	v := newVM(t)
	v.record.err = errors.New("the bucket answers 503")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, v.config()) }()
	var s status.Status
	eventually(t, "the wait is shown", func() (ok bool) {
		s, _ = ReadStatus(t.Context(), SocketPath(v.config().RunDir))
		return len(s.Blocked) > 0
	})
	if b := s.Blocked[0]; s.Replica.Phase != "record" || s.Replica.Ready || b.Row != "2" ||
		b.Name != "record-unreadable" ||
		!strings.Contains(b.Reason, "503") || b.Next == "" || b.Since.IsZero() {
		t.Errorf("%+v", s)
	}
	if err := Alive(t.Context(), SocketPath(v.config().RunDir)); err != nil {
		t.Errorf("a wait is no reason to be killed: %v", err)
	}
	begin := time.Now()
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("being told to stop is no error: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it does not stop")
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the stop took %s", took)
	}
	if got := v.notify.all(); !slices.Equal(got, []string{"identity", "data disk", "record", "STOPPING", "stopping"}) {
		t.Errorf("the service manager heard %q", got)
	}
	if err := Alive(t.Context(), SocketPath(v.config().RunDir)); !errors.Is(err, ErrNoAgent) {
		t.Errorf("after the end: %v", err)
	}
}

// The status is there until all children have stopped: the watchdog asks meanwhile, and a stop may take longer than its
// patience.
func TestTheStatusOutlastsTheStop(t *testing.T) {
	v := newVM(t)
	v.record.err = errors.New("503")
	asked := make(chan error, 1)
	cfg := v.config()
	cfg.Notify = &atStop{notifier: v.notify,
		do: func() { asked <- Alive(context.Background(), SocketPath(cfg.RunDir)) }}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg) }()
	eventually(t, "it boots", func() bool { return slices.Contains(v.notify.all(), "record") })
	stop()
	if err := <-asked; err != nil {
		t.Errorf("asked while it stops: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// atStop does something while the agent stops.
type atStop struct {
	*notifier
	do func()
}

func (s *atStop) Stopping() { s.do() }

func TestARestartAsksForTheConfigurationAgainAndDoesWithoutAnAnswer(t *testing.T) {
	v := newVM(t)
	if _, in := v.identified(); in.cluster.Replicas != 3 {
		t.Fatalf("%+v", in)
	}
	v.metadata.attributes[ClusterAttribute] = v.document + "replicas: 5\n"
	if _, in := v.identified(); in.cluster.Replicas != 5 {
		t.Errorf("a changed configuration is not in force after a restart: %d replicas", in.cluster.Replicas)
	}
	v.metadata.err = errBroken
	if _, in := v.identified(); in.cluster.Replicas != 5 || in.self.InstanceID != "101" {
		t.Errorf("without the metadata server: %+v", in)
	}
	os.RemoveAll(v.config().RunDir) // another boot
	if _, err := v.agent().identify(t.Context(), nothing{}); !errors.Is(err, errBroken) {
		t.Errorf("another boot goes on as the former: %v", err)
	}
}

// A mistake in the document must not take a voter down because its agent was started again; a boot knows no other
// document.
func TestARestartGoesOnWithTheFormerDocumentWhereTheNewOneIsWrong(t *testing.T) {
	v := newVM(t)
	v.identified()
	for _, wrong := range []string{v.document + "nonsense: 1\n", ""} {
		v.metadata.attributes[ClusterAttribute] = wrong
		for range 2 { // nor is the wrong one remembered
			a, in := v.identified()
			if w := a.tracker.All(); in.cluster.Name != "demo" || len(w) != 1 || w[0].Name != documentRefused {
				t.Errorf("cluster %q, waits %+v", in.cluster.Name, w)
			}
		}
	}
	for _, other := range [][2]string{{"101", "boot2"}, {"102", "boot1"}} {
		v.metadata.self.InstanceID, v.metadata.self.BootID = other[0], other[1]
		if _, err := v.agent().identify(t.Context(), nothing{}); !errors.Is(err, ErrNoConfiguration) {
			t.Errorf("instance and boot %q go on with the former's document: %v", other, err)
		}
	}
	v.metadata.self, v.metadata.attributes[ClusterAttribute] = v.self, v.document+"replicas: 5\n"
	if a, in := v.identified(); in.cluster.Replicas != 5 || len(a.tracker.All()) != 0 {
		t.Errorf("a right document: %d replicas, waits %+v", in.cluster.Replicas, a.tracker.All())
	}
}

func TestARestartDoesNotWaitLongForASilentMetadataServer(t *testing.T) {
	v := newVM(t)
	v.identified()
	v.metadata.hangs = true
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		id, err := v.agent().memory().ask(t.Context())
		if took := time.Since(begin); err != nil || id.Self.InstanceID != "101" || took != etcdmember.RestartPatience {
			t.Errorf("%+v, %v after %s", id, err, took)
		}
	})
}

func TestAPhaseThatOnlyAFaultHoldsUpHasADeadline(t *testing.T) {
	v := newVM(t)
	synctest.Test(t, func(t *testing.T) {
		a := v.agent()
		begin := time.Now()
		hangs := func(ctx context.Context, in nothing) (nothing, error) {
			<-ctx.Done()
			return in, errBroken
		}
		_, err := enter(t.Context(), a.progress, PhaseIdentity, nothing{}, hangs)
		if err == nil || err.Error() != "identity: not done within 2m0s: broken" || !errors.Is(err, errBroken) ||
			time.Since(begin) != 2*time.Minute {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
	for _, p := range []Phase{PhaseRecord, PhaseEtcd, PhaseKeep} {
		if d, ok := deadlines[p]; ok {
			t.Errorf("%s waits for others, for as long as it takes, and has a deadline of %s", p, d)
		}
	}
}

// established writes what a boot in which etcd ran left on the disk of a replica.
func (v *vm) established(place replica.Place, phase string) {
	v.t.Helper()
	text := fmt.Sprintf(`{"clusterUID":"uid","epoch":1,"token":"t","replica":{"zone":%q,"name":%q},"instanceID":"101","bootID":"boot1",
		"incarnation":1,"memberID":"a1","newestEpoch":1,"phase":%q}`, place.Zone, place.Name, phase)
	if err := os.WriteFile(filepath.Join(v.data(), "agent.json"), []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// Only a disk on which this replica's etcd ran, with certificates of this replica in this cluster, skips the record.
func TestOnlyTheOwnEstablishedDiskSkipsTheRecord(t *testing.T) {
	other := replica.Place{Zone: "us-central1-b", Name: "master-b"}
	for name, c := range map[string]struct {
		prepare func(v *vm, a *Agent, in identified)
		skips   bool
	}{
		"its own": {func(v *vm, a *Agent, in identified) {
			v.established(v.self.Place, "started")
			v.certify(a, in, v.self, "uid")
		}, true},
		"no etcd ran": {func(v *vm, a *Agent, in identified) { v.certify(a, in, v.self, "uid") }, false},
		"a join was broken off": {func(v *vm, a *Agent, in identified) {
			v.established(v.self.Place, "added")
			v.certify(a, in, v.self, "uid")
		}, false},
		"no certificates": {func(v *vm, _ *Agent, _ identified) { v.established(v.self.Place, "started") }, false},
		"another replica's disk": {func(v *vm, a *Agent, in identified) {
			v.established(other, "started")
			v.certify(a, in, v.self, "uid")
		}, false},
		"another replica's certificates": {func(v *vm, a *Agent, in identified) {
			v.established(v.self.Place, "started")
			id := v.self
			id.Place = other
			v.certify(a, in, id, "uid")
		}, false},
		"another cluster's certificates": {func(v *vm, a *Agent, in identified) {
			v.established(v.self.Place, "started")
			v.certify(a, in, v.self, "another")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVM(t)
			a, in := v.identified()
			c.prepare(v, a, in)
			v.record.err = errBroken
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			_, err := a.readRecord(ctx, in)
			if c.skips && (err != nil || v.record.views > 0) || !c.skips && (err == nil || v.record.views == 0) {
				t.Errorf("%v, the record was read %d times", err, v.record.views)
			}
		})
	}
}

func TestTheHolderOfTheClaimMakesTheBundleAndAllReadItBack(t *testing.T) {
	v := newVM(t)
	a, in := v.identified()
	v.record.view.Bundle = 1
	rec := recorded{identified: in, makeBundle: true, membership: membershipOf(a, in)}
	if _, err := rec.membership.Claim(t.Context()); err != nil { // says whose cluster it is
		t.Fatal(err)
	}
	a.openCertificates(in, rec.membership)
	first, err := a.certify(t.Context(), rec)
	if err != nil || first.issued.Bundle == nil || v.bundles.creates != 1 {
		t.Fatalf("%v, %d creates", err, v.bundles.creates)
	}
	if err := os.RemoveAll(in.files.Dir); err != nil {
		t.Fatal(err)
	}
	rec.makeBundle = false
	second, err := a.certify(t.Context(), rec)
	if err != nil || second.issued.Bundle == nil || v.bundles.creates != 1 {
		t.Fatalf("%v, %d creates", err, v.bundles.creates)
	}
	third, err := a.certify(t.Context(), rec)
	if err != nil || third.issued.Bundle != nil {
		t.Errorf("a disk with all certificates needs no bundle: %v", err)
	}
	if _, err := certs.EtcdTLS(in.files); err != nil {
		t.Error(err)
	}
}

func TestPreflightNamesAPortThatIsTaken(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	port := portOf(l)
	if err := portFree(port); err == nil {
		t.Errorf("port %d is listened on and free", port)
	}
	l.Close()
	if err := portFree(port); err != nil {
		t.Errorf("port %d: %v", port, err)
	}
}

func TestPreflightRefusesADiskWithAnotherClustersCertificates(t *testing.T) {
	v := newVM(t)
	a, in := v.identified()
	a.membership = membershipOf(a, in)
	if err := leavesOfThisCluster(in.files, a.membership.ClusterUID()); err != nil {
		t.Errorf("an empty disk: %v", err)
	}
	v.certify(a, in, v.self, "another")
	if err := leavesOfThisCluster(in.files, a.membership.ClusterUID()); err == nil ||
		!strings.Contains(err.Error(), "another") {
		t.Errorf("%v", err)
	}
}

func TestTheSameProcessIsLeftAlone(t *testing.T) {
	spec := supervisor.Spec{Name: "a", Path: "/bin/a", Args: []string{"--x"}, Env: []string{"A=1"},
		After: []string{"b"}}
	if !sameProcess(spec, spec) {
		t.Error("it differs from itself")
	}
	for name, change := range map[string]func(*supervisor.Spec){
		"limit":       func(s *supervisor.Spec) { s.Limits.MemoryMax = 1 },
		"program":     func(s *supervisor.Spec) { s.Path = "/bin/b" },
		"arguments":   func(s *supervisor.Spec) { s.Args = nil },
		"environment": func(s *supervisor.Spec) { s.Env = nil }, "order": func(s *supervisor.Spec) { s.After = nil },
	} {
		other := spec
		change(&other)
		if sameProcess(spec, other) {
			t.Errorf("another %s is the same", name)
		}
	}
}

// deaf does not heed that it is told to stop, as a call that a frozen disk blocks.
type deaf struct {
	Metadata
	until chan struct{}
}

// WatchInterfaces never says anything.
func (d deaf) WatchInterfaces(ctx context.Context, _ func([]replica.Interface), _ func(error)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (d deaf) Spot(context.Context) (bool, error) { return false, nil }

// WatchMaintenanceEvent never says anything.
func (d deaf) WatchMaintenanceEvent(ctx context.Context, _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (d deaf) Identity(context.Context) (replica.Identity, error) {
	<-d.until
	return replica.Identity{}, errBroken
}

// Processes have to be told to stop whatever hangs in the agent itself.
func TestWhatHangsInTheAgentDoesNotHoldTheStopUp(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	cfg := v.config()
	until := make(chan struct{})
	defer close(until)
	cfg.Metadata = deaf{until: until}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	eventually(t, "it asks", func() bool { return slices.Contains(v.notify.all(), "identity") })
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * stopPatience):
		t.Fatal("it does not stop")
	}
	if got := v.notify.all(); !slices.Contains(got, "STOPPING") {
		t.Errorf("the service manager heard %q", got)
	}
}

// An agent that is told to stop while it asks who it is stops, and does not go on as before.
func TestAStopIsNoSilenceOfTheMetadataServer(t *testing.T) {
	v := newVM(t)
	v.identified()
	v.metadata.hangs = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if id, err := v.agent().memory().ask(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it goes on as %+v: %v", id, err)
	}
}

// What the replica has to be started again for is not hidden by an order to stop that comes at the same time: a removed
// member has nothing to hand over.
func TestAnOrderToStopHidesNoStartAgain(t *testing.T) {
	v := newVM(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v.metadata.err = fmt.Errorf("%w: %w", ErrStartAgain, errBroken)
	if err := Run(ctx, v.config()); !errors.Is(err, ErrStartAgain) {
		t.Errorf("it ended with %v", err)
	}
	v.metadata.err = errBroken
	if err := Run(ctx, v.config()); err != nil {
		t.Errorf("told to stop, it ended with %v", err)
	}
}

// A replica may wait for its place in etcd for longer than a leaf lives. Its certificates are renewed meanwhile.
func TestCertificatesAreLookedAfterWhileTheReplicaWaitsForItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _, in := renewing(t)
		v.established(v.self.Place, "started")
		v.record.err = errBroken // so that the etcd phase waits
		key := in.files.CASignerKey(certs.Kubernetes)
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		encoded := v.bundles.held
		v.bundles.err = errBroken
		ctx, end := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		again := v.agent()
		go func() { ended <- again.live(ctx, end) }()
		time.Sleep(6 * time.Second) // longer than a boot waits for a bundle that it can do without
		synctest.Wait()
		if phase := again.progress.now(); phase != PhaseEtcd {
			t.Fatalf("it is in phase %s", phase)
		}
		v.bundles.mu.Lock()
		v.bundles.err, v.bundles.held = nil, encoded
		v.bundles.mu.Unlock()
		time.Sleep(30 * time.Second) // the longest pause between two tries
		synctest.Wait()
		if _, err := os.Stat(key); err != nil {
			t.Error(err)
		}
		end(nil)
		if err := <-ended; err == nil {
			t.Error("it ended without an error")
		}
	})
}

func TestOnlyMembersOfThreeWaitForTheirPromotion(t *testing.T) {
	for replicas, want := range map[int]time.Duration{1: 0, 2: 0, 3: promotionPatience, 7: promotionPatience} {
		if got := awaitPromotion(replicas); got != want {
			t.Errorf("%d replicas: %s, want %s", replicas, got, want)
		}
	}
}

// A member that has just joined is promoted within a moment: its apiserver then needs no other member from the start.
func TestABootWaitsForThePromotionOfItsMember(t *testing.T) {
	v := newVM(t)
	a, in := v.identified()
	supervised(t, a)
	v.established(v.self.Place, "started")
	v.record.err = errBroken // so nothing is done but to keep what runs
	if err := a.supervisor.Start(sleeper(etcdName)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs", a.etcdChild().Running)
	m := newMember(t, a, in, threeOf(func(s *table.MemberStatus) { s.Learner, s.Applied, s.Committed = true, 7, 7 }))
	promoted := time.AfterFunc(time.Second, func() { m.is(func(s *table.MemberStatus) { s.Learner = false }) })
	defer promoted.Stop()
	_, err := a.settle(t.Context(), certified{recorded: recorded{identified: in, membership: a.membership}})
	if s, statusErr := a.membership.Status(t.Context()); err != nil || statusErr != nil || s.Learner {
		t.Errorf("the boot goes on with a learner: %+v, %v, %v", s, err, statusErr)
	}
}

// A cluster must not be founded where its first database would fill the disk.
func TestPreflightNamesADiskWithoutRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a file system is mounted")
	}
	v := newVM(t)
	v.identified()
	if err := unix.Mount("tmpfs", v.data(), "tmpfs", 0, fmt.Sprintf("size=%d", leastRoom-(1<<20))); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(v.data(), 0)
	if err := room(v.data()); err == nil || !strings.Contains(err.Error(), v.data()+" has 511 MiB left") {
		t.Errorf("%v", err)
	}
	if err := unix.Mount("tmpfs", v.data(), "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", leastRoom)); err != nil {
		t.Fatal(err)
	}
	if err := room(v.data()); err != nil {
		t.Error(err)
	}
}

// Whoever may ask the agent may start etcd without the record: that is root alone.
func TestOnlyTheOwnerMayAskTheAgent(t *testing.T) {
	a := newVM(t).agent()
	stop, err := a.serve(SocketPath(a.cfg.RunDir))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if info, err := os.Stat(SocketPath(a.cfg.RunDir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
