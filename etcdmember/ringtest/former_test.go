package ringtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// logged is what the other etcd has logged.
func (o *otherEtcd) logged(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.agent.dir, "etcd.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantDeath waits until the other etcd has ended by itself, with an error that says why, in one of these ways.
func (o *otherEtcd) wantDeath(t *testing.T, cmd *exec.Cmd, why ...string) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if exit := (&exec.ExitError{}); !errors.As(err, &exit) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(etcdtest.Patience):
		t.Fatalf("it still runs:\n%s", o.logged(t))
	}
	log := o.logged(t)
	for line := range strings.Lines(log) {
		if slices.ContainsFunc(why, func(w string) bool { return strings.Contains(line, w) }) {
			t.Logf("it said: %.400s", line)
			return
		}
	}
	t.Errorf("it did not say %q:\n%s", why, log)
}

// The image of the new VM is one minor version too old, and its agent does not check that (ours does): etcd there is
// listed as a learner and starts. It is refused, nothing but its own entry changes, the leader does not promote it and
// says that it is not heard of.
func TestAMemberOfTheVersionBeforeIsRefusedByOurCluster(t *testing.T) {
	needFormerEtcd(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	pd := replica.Place{Zone: "us-central1-a", Name: "m-d"}
	r := newRing(t, pa, pb, pc, pd)
	r.begin(pa, pb, pc)
	d := &otherEtcd{agent: r.agents[pd]}
	url := table.PeerURL(d.agent.me.DNSName(testCluster))
	d.incarnation(0) // by which the others know its address
	c := r.client(pa)
	var id record.MemberID
	r.await("it is listed as a learner", func() error {
		added, err := c.MemberAddAsLearner(t.Context(), []string{url})
		if err == nil {
			id = record.MemberID(added.Member.ID)
		}
		return err
	})
	d.incarnation(id)
	before, err := c.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster := []string{d.agent.me.MemberName() + "=" + url}
	for _, m := range before.Members {
		if record.MemberID(m.ID) != id {
			cluster = append(cluster, m.Name+"="+m.PeerURLs[0])
		}
	}
	cmd := d.run(t, "--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "existing")
	d.wantDeath(t, cmd, "incompatible with current running cluster")
	d.wantNothingChanged(t, id, before.Header.ClusterId)
}

// A VM's image goes back by one minor version, and its disk stays: etcd there does not read what the newer one wrote,
// and leaves it as it is.
func TestAMemberOfTheVersionBeforeDoesNotStartOnOurDirectory(t *testing.T) {
	needFormerEtcd(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	r := newRing(t, pa, pb, pc)
	r.begin(pa, pb, pc)
	s, err := r.status(pc)
	if err != nil {
		t.Fatal(err)
	}
	r.agents[pc].end()
	o := &otherEtcd{agent: r.agents[pc]}
	cmd := o.run(t)
	// By the cluster's version in the log, or by the database's, which the leader sets some seconds after the first
	// boot.
	o.wantDeath(t, cmd, "invalid downgrade", `version \"3.7.0\" is not supported`)
	r.await("the others serve", func() error { return r.put(r.client(pa), "k", "v") })
	r.agents[pc].begin()
	r.await("with the image of the others it is the same member", func() error {
		if now, err := r.status(pc); err != nil || now.MemberID != s.MemberID {
			return fmt.Errorf("%+v, %w", now, err)
		}
		return r.voters(pa, pb, pc)
	})
}

// etcd itself would make a member of the next minor version a voter. Our leader does not, says so, and does once it is
// of the others' version.
func TestALearnerOfTheVersionAfterIsNotPromoted(t *testing.T) {
	realtest.OnlyInCases(t)
	if !etcdtest.InOwnNetwork(t) {
		return
	}
	pd := replica.Place{Zone: "us-central1-a", Name: "m-d"}
	r := newRing(t, pa, pb, pc, pd)
	r.begin(pa, pb, pc)
	d := r.agents[pd]
	d.child.version = "3.8.0"
	d.begin()
	r.await("the leader says so", func() error {
		return r.leaderBlocked("learner-other-version", "runs etcd 3.8.0, and the cluster's version is 3.7.0")
	})
	s, err := r.status(pd)
	if err != nil || !s.Learner {
		t.Errorf("%+v, %v", s, err)
	}
	d.end()
	d.child.version = ""
	d.begin()
	r.await("with the version of the others it is a voter", func() error { return r.voters(pa, pb, pc, pd) })
}

// incarnation is what the record says of its place, as an agent that added the member leaves it; with an id of 0 it is
// only begun.
func (o *otherEtcd) incarnation(id record.MemberID) {
	a := o.agent
	i := record.Incarnation{Place: a.me.Place, Number: 1, InstanceID: a.me.InstanceID, BootID: "b", Epoch: 1,
		MemberID: id, Addresses: a.me.Addresses[:1], Time: time.Now()}
	if id != 0 {
		i.Started = &record.Started{Epoch: 1, MemberID: id, Time: time.Now()}
	}
	a.ring.record.Change(func(v *record.View) { v.Replicas[a.me.Place] = []record.Incarnation{i} })
}

// leaderBlocked says why the leader does not show this wait.
func (r *ring) leaderBlocked(name, reason string) error {
	leader := r.leader()
	if leader == (replica.Place{}) {
		return errors.New("nobody leads")
	}
	all := r.agents[leader].membership().waits.All()
	for _, b := range all {
		if b.Name == name && strings.Contains(b.Reason, reason) {
			r.t.Logf("%s: %s %s", b.Name, b.Reason, b.Next)
			return nil
		}
	}
	return fmt.Errorf("%s is blocked by %+v", leader, all)
}

// wantNothingChanged: it stays the learner that it was added as, the others serve, and the leader says what it waits
// for.
func (o *otherEtcd) wantNothingChanged(t *testing.T, id record.MemberID, cluster uint64) {
	t.Helper()
	r := o.agent.ring
	r.await("the leader says so",
		func() error { return r.leaderBlocked("learner-not-ready", id.String()+" is not heard of") })
	c := r.client(pb)
	if err := r.put(c, "k", "v"); err != nil {
		t.Error(err)
	}
	list, err := c.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Members, func(m *etcdserverpb.Member) bool { return m.ID == uint64(id) })
	if i < 0 || !list.Members[i].IsLearner || list.Members[i].Name != "" || len(list.Members) != 4 ||
		list.Header.ClusterId != cluster {
		t.Errorf("members of cluster %x: %v", list.Header.ClusterId, list.Members)
	}
}
