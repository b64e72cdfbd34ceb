package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

const (
	region   = "us-central1"
	oldImage = "projects/example/global/images/quorate-1"
	newImage = "projects/example/global/images/quorate-2"
)

var zones = []string{region + "-a", region + "-b", region + "-c"}

// world is a project with one cluster, in memory: the Compute API, the bucket, and agents that do in a few lines what
// quorate's do. It is both Cloud and Cluster of a Fleet. It checks with each change what no command may ever do.
type world struct {
	t  *testing.T
	mu sync.Mutex

	vms     map[replica.Place]*vm
	disks   map[string]*gce.FleetDisk // by zone and name
	members map[replica.Place]*member
	leader  replica.Place
	// incarnations and orders are the record's.
	incarnations map[replica.Place][]record.Incarnation
	orders       []record.Order
	hasRecord    bool
	formed       bool
	reports      map[replica.Place]report.Sighting
	// around are the resources around the masters, by their links. surrounded: the document asks for them.
	around     map[string]gce.Resource
	surrounded bool
	// onDemand: it asks for a load balancer on demand. attach puts a VM into its group, as its agent does; nil: in this
	// world they are in it as soon as the group is there.
	onDemand bool
	attach   func(replica.Place)
	// walled: no probe of the load balancer's arrives.
	walled bool
	// left lists them, wherever they are.
	left func() []string
	ids  int

	// rules are what the wish that is carried out allows.
	rules rules
	// changes counts the calls that change something; hurt is asked before and after each.
	changes    int
	hurt       func(n int, effect bool) error
	lastChange time.Time
	// mute are replicas whose agents cannot write reports.
	mute map[replica.Place]bool
	// down are replicas of which a component does not run.
	down map[replica.Place]string
}

type rules struct {
	// all: everything may go. inPlace: VMs may go whose members stay. interrupts: the only voter may go, too.
	all, inPlace, interrupts bool
	// target is the VM that may go.
	target string
	// dropDisks: data disks may go.
	dropDisks bool
	// onDemand: the load balancer is made on demand, and its parts may go.
	onDemand bool
	// begun is what another command has begun of a further replica.
	begun begun
}

type begun int

const (
	nothingBegun begun = iota
	begunDisk          // and has no VM
	begunVM            // which never joins
)

type vm struct {
	gce.FleetVM
	booted time.Time
}

type member struct {
	id, disk, runsOn string
	voter            bool
}

func newWorld(t *testing.T, replicas int) *world {
	w := &world{t: t, vms: map[replica.Place]*vm{}, disks: map[string]*gce.FleetDisk{},
		members: map[replica.Place]*member{}, incarnations: map[replica.Place][]record.Incarnation{},
		reports: map[replica.Place]report.Sighting{}, mute: map[replica.Place]bool{}, around: map[string]gce.Resource{},
		down: map[replica.Place]string{}}
	w.left = func() []string { return slices.Sorted(maps.Keys(w.around)) }
	for n := range replicas {
		p := place(n)
		disk := p.Name + "-data"
		w.disks[p.Zone+"/"+disk] = &gce.FleetDisk{Zone: p.Zone, Name: disk, ID: w.id()}
		w.insertVM(p, gce.VMSpec{Name: p.Name, DataDisk: disk, Image: oldImage, MachineType: "e2-standard-2",
			Network: "projects/example/global/networks/default", ServiceAccount: instance.MastersAccount()})
	}
	if w.hasRecord = replicas > 0; w.hasRecord {
		w.orders = []record.Order{{Number: 1, Kind: record.OrderReplicas, Replicas: replicas}}
	}
	return w
}

func place(n int) replica.Place {
	return replica.Place{Zone: zones[n%3], Name: fmt.Sprintf("master-%c", 'a'+n)}
}

// live has the agents work until the context ends.
func (w *world) live(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		w.tick()
		var live []replica.Place
		for _, p := range w.places() {
			if w.attach != nil && w.alive(p) && w.leaveOf(p) == nil {
				live = append(live, p)
			}
		}
		w.mu.Unlock()
		for _, p := range live {
			w.attach(p)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (w *world) id() string { w.ids++; return strconv.Itoa(1000 + w.ids) }

func (w *world) alive(p replica.Place) bool {
	v, m := w.vms[p], w.members[p]
	return v != nil && m != nil && m.runsOn == v.InstanceID
}

func (w *world) votes() (voters, touch int) {
	for p, m := range w.members {
		if m.voter {
			voters++
			if w.alive(p) {
				touch++
			}
		}
	}
	return voters, touch
}

func (w *world) hasQuorum() bool {
	voters, touch := w.votes()
	return voters > 0 && touch > voters/2
}

func (w *world) wanted() int {
	for _, o := range slices.Backward(w.orders) {
		if o.Kind == record.OrderReplicas {
			return o.Replicas
		}
	}
	return 3
}

func (w *world) places() []replica.Place {
	return slices.SortedFunc(maps.Keys(w.vms), replica.ComparePlaces)
}

func (w *world) leaveOf(p replica.Place) *record.Order {
	for n := range w.orders {
		if o := &w.orders[n]; o.Kind == record.OrderLeave && *o.Place == p {
			return o
		}
	}
	return nil
}

// tick lets each agent do what it has to, and report.
func (w *world) tick() {
	for _, p := range w.places() {
		if v := w.vms[p]; w.leaveOf(p) == nil && time.Since(v.booted) > 5*time.Second {
			w.joins(p, v)
		}
	}
	w.elect()
	if w.hasQuorum() {
		for n := range w.orders {
			if o := &w.orders[n]; o.Kind == record.OrderLeave && o.Done == nil {
				w.leaves(o)
			}
		}
		if w.wanted() >= 3 && len(w.members) >= 3 {
			for p, m := range w.members {
				m.voter = m.voter || w.alive(p)
			}
		}
	}
	w.elect()
	for _, p := range w.places() {
		w.report(p)
	}
}

func (w *world) elect() {
	if !w.hasQuorum() {
		w.leader = replica.Place{}
		return
	}
	if m := w.members[w.leader]; m != nil && m.voter && w.alive(w.leader) {
		return
	}
	for _, p := range slices.SortedFunc(maps.Keys(w.members), replica.ComparePlaces) {
		if w.members[p].voter && w.alive(p) {
			w.leader = p
			return
		}
	}
}

func (w *world) joins(p replica.Place, v *vm) {
	d := w.disks[p.Zone+"/"+v.DataDisk]
	m := w.members[p]
	switch {
	case m != nil && m.disk == d.ID && m.runsOn == v.InstanceID:
		return
	case m != nil && m.disk == d.ID:
		m.runsOn = v.InstanceID
	case !w.formed && w.hasRecord:
		w.formed = true
		w.members[p] = &member{id: "a" + w.id(), voter: true, disk: d.ID, runsOn: v.InstanceID}
	case w.hasQuorum():
		w.members[p] = &member{id: "a" + w.id(), disk: d.ID, runsOn: v.InstanceID}
	default:
		return
	}
	w.incarnations[p] = append(w.incarnations[p], record.Incarnation{Place: p, InstanceID: v.InstanceID,
		Number: uint64(len(w.incarnations[p]) + 1), Epoch: 1, DiskID: d.ID,
		Started: &record.Started{Epoch: 1, DiskID: d.ID}})
}

// leaves is etcd's leader, which removes a member only while the rest is a quorum.
func (w *world) leaves(o *record.Order) {
	m := w.members[*o.Place]
	if m == nil {
		o.Done = &record.Done{What: "left"}
		return
	}
	delete(w.members, *o.Place)
	if voters, _ := w.votes(); voters == 0 {
		for p, other := range w.members {
			if w.alive(p) {
				other.voter = true
				break
			}
		}
	}
	if !w.hasQuorum() {
		w.members[*o.Place] = m
	}
}

// report writes a replica's report if it has changed, or each 30 s.
func (w *world) report(p replica.Place) {
	v, m := w.vms[p], w.members[p]
	r := report.Report{Place: p, InstanceID: v.InstanceID, Epoch: 1, ClusterID: clusterID.String(), Phase: "etcd"}
	if w.alive(p) {
		r.Member, r.Ready, r.Phase = m.id, true, "keep"
		for _, q := range slices.SortedFunc(maps.Keys(w.members), replica.ComparePlaces) {
			one := report.Member{Name: q.String(), ID: w.members[q].id, Role: "learner", Started: true,
				Leader: q == w.leader}
			if w.members[q].voter {
				one.Role = "voter"
			}
			if p == w.leader {
				one.Heard = new(w.alive(q))
			}
			r.Members = append(r.Members, one)
		}
		if name := w.down[p]; name != "" {
			r.Components = append(r.Components, report.Component{Name: name, State: "starting"})
		}
	}
	last, written := w.reports[p]
	same := written && fmt.Sprint(texts(last.Report)) == fmt.Sprint(texts(r))
	if w.mute[p] || same && time.Since(last.Written) < report.Period {
		return
	}
	w.reports[p] = report.Sighting{Report: r, Written: time.Now()}
}

func texts(r report.Report) (out []string) {
	out = append(out, r.InstanceID, r.Phase, r.Member)
	for _, c := range r.Components {
		out = append(out, c.Name, c.State)
	}
	for _, m := range r.Members {
		out = append(out, fmt.Sprint(m.Name, m.ID, m.Role, m.Leader, m.Heard != nil && *m.Heard))
	}
	return out
}

const clusterID = record.MemberID(0xc1)

// View is the record.
func (w *world) View(context.Context) (record.View, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := record.View{Replicas: map[replica.Place][]record.Incarnation{}, Orders: slices.Clone(w.orders)}
	if w.hasRecord {
		v.Inception = &record.Inception{Name: "prod-1", Region: region, ProjectNumber: "1"}
	}
	if w.formed {
		v.Epochs = []record.Epoch{{Number: 1, Claim: &record.Claim{Source: record.Source{Kind: record.SourceEmpty}},
			Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: clusterID, MemberID: 1}}}}
	}
	for p, all := range w.incarnations {
		v.Replicas[p] = slices.Clone(all)
	}
	return v, nil
}

// All are the reports.
func (w *world) All(context.Context) (out []report.Sighting, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range slices.SortedFunc(maps.Keys(w.reports), replica.ComparePlaces) {
		s := w.reports[p]
		s.Age = time.Since(s.Written)
		out = append(out, s)
	}
	return out, nil
}

func (w *world) FleetVMs(context.Context) (out []gce.FleetVM, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.places() {
		out = append(out, w.vms[p].FleetVM)
	}
	return out, nil
}

func (w *world) FleetDisks(context.Context) (out []gce.FleetDisk, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(w.disks)) {
		out = append(out, *w.disks[key])
	}
	return out, nil
}

func (w *world) ResolveImage(_ context.Context, image string) (string, error) {
	if image == "projects/example/global/images/family/quorate" {
		return oldImage, nil
	}
	return image, nil
}

// change carries out what changes something, or fails before or after it, and checks that the quorum survives it.
func (w *world) change(do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
	if w.hurt != nil {
		if err := w.hurt(w.changes, false); err != nil {
			return err
		}
	}
	had := w.hasQuorum()
	voters, _ := w.votes()
	if err := do(); err != nil {
		return err
	}
	w.lastChange = time.Now()
	if had && !w.hasQuorum() && !w.rules.all && !(voters == 1 && w.rules.interrupts) {
		w.t.Error("a step cost the quorum")
	}
	if w.hurt != nil {
		return w.hurt(w.changes, true)
	}
	return nil
}

// begin writes the inception.
func (w *world) begin(context.Context) error {
	return w.change(func() error {
		if w.hasRecord {
			return errors.New("the record began already")
		}
		w.hasRecord = true
		return nil
	})
}

// proven checks that what takes something away goes by a report that the leader wrote after the change before it.
func (w *world) proven(what string) {
	s := w.reports[w.leader]
	if !w.rules.all && !s.Written.After(w.lastChange) {
		w.t.Errorf("%s, though the leader (%s) has not reported since the change before", what, w.leader)
	}
}

func (w *world) CreateOrder(_ context.Context, o record.Order) (record.Order, error) {
	err := w.change(func() error {
		if o.Kind == record.OrderLeave {
			w.proven("an order to leave")
		}
		o.Number = uint64(len(w.orders) + 1)
		w.orders = append(w.orders, o)
		return nil
	})
	return o, err
}

func (w *world) InsertDisk(_ context.Context, zone string, d gce.DiskSpec) error {
	return w.change(func() error {
		if old := w.disks[zone+"/"+d.Name]; old != nil && !maps.Equal(old.Labels, d.Labels) {
			return errors.New("another disk has that name")
		} else if old == nil {
			w.disks[zone+"/"+d.Name] = &gce.FleetDisk{Zone: zone, Name: d.Name, ID: w.id(), Labels: d.Labels}
		}
		return nil
	})
}

func (w *world) InsertVM(_ context.Context, zone string, v gce.VMSpec) error {
	return w.change(func() error {
		p := replica.Place{Zone: zone, Name: v.Name}
		if old := w.vms[p]; old != nil {
			if !maps.Equal(old.Labels, v.Labels) || old.DataDisk != v.DataDisk {
				return errors.New("another VM has that name")
			}
			return nil
		}
		if d := w.disks[zone+"/"+v.DataDisk]; d == nil || len(d.Users) > 0 {
			return fmt.Errorf("disk %s is not free", v.DataDisk)
		}
		if v.Metadata["quorate-cluster"] == "" || v.DeviceName != "quorate-data" {
			w.t.Errorf("VM %s gets no document, or no disk: %+v", v.Name, v)
		}
		w.insertVM(p, v)
		return nil
	})
}

func (w *world) insertVM(p replica.Place, v gce.VMSpec) {
	w.disks[p.Zone+"/"+v.DataDisk].Users = []string{p.Name}
	one := gce.FleetVM{Labels: v.Labels, Image: v.Image, DataDisk: v.DataDisk, MachineType: v.MachineType,
		ExternalIP: v.ExternalIP, Boot: v.BootDisk, Network: v.Network, Subnetwork: v.Subnetwork,
		ServiceAccount: v.ServiceAccount, Tags: v.Tags,
		Metadata: v.Metadata}
	one.Created = time.Now()
	one.VM = replica.VM{Place: p, InstanceID: w.id(), Status: "RUNNING"}
	w.vms[p] = &vm{FleetVM: one, booted: time.Now()}
}

// externalIP is the endpoint's address of a load balancer on demand.
const externalIP = "203.0.113.10"

// users are who has it.
func (w *world) users() (out []gce.User) {
	for _, p := range w.places() {
		if w.vms[p].ExternalIP == externalIP {
			out = append(out, gce.User{Kind: gce.Instance, Zone: p.Zone, Name: p.Name})
		}
	}
	if _, found := w.around[link(gce.Resource{Kind: gce.ForwardingRule, Name: "prod-1"})]; found && w.onDemand {
		out = append(out, gce.User{Kind: gce.ForwardingRule, Name: "prod-1"})
	}
	return out
}

// GiveAddress refuses what somebody else has.
func (w *world) GiveAddress(_ context.Context, p replica.Place, id, address string) error {
	return w.change(func() error {
		v := w.vms[p]
		switch {
		case v == nil || v.InstanceID != id:
			return errors.New("there is no such VM")
		case v.ExternalIP == address:
			return nil
		case len(w.users()) > 0:
			return errors.New("the address is in use")
		}
		v.ExternalIP = address
		return nil
	})
}

// TakeAddress needs a report of the leader, as what else takes something away.
func (w *world) TakeAddress(_ context.Context, p replica.Place, id, address string) error {
	return w.change(func() error {
		w.proven("an address is taken")
		if v := w.vms[p]; v != nil && v.InstanceID == id && v.ExternalIP == address {
			v.ExternalIP = ""
		}
		return nil
	})
}

// IsAttached says so of all that live, as soon as there is a group.
func (w *world) IsAttached(_ context.Context, group string, p replica.Place) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, found := w.around[link(gce.Resource{Kind: gce.EndpointGroup, Zone: p.Zone, Name: group})]
	return found && w.alive(p), nil
}

// IsHealthy says so of all that live, unless no probe arrives.
func (w *world) IsHealthy(_ context.Context, _ string, p replica.Place) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alive(p) && !w.walled, nil
}

// setAddress gives a VM an external address, or none, as the Compute API does.
func (w *world) setAddress(p replica.Place, address netip.Addr) error {
	w.vms[p].ExternalIP = ""
	if address.IsValid() {
		w.vms[p].ExternalIP = address.String()
	}
	return nil
}

func (w *world) DeleteVM(_ context.Context, p replica.Place, id string) error {
	return w.change(func() error {
		v := w.vms[p]
		if v == nil {
			return nil
		}
		if v.InstanceID != id {
			return errors.New("another VM has that name")
		}
		w.proven("a VM is deleted")
		switch {
		case w.rules.all:
		case !w.rules.inPlace && w.rules.target != id:
			w.t.Errorf("VM %s (%s) is nobody's to delete", p, id)
		case !w.rules.inPlace && w.members[p] != nil:
			w.t.Errorf("VM %s goes before its member", p)
		}
		w.disks[p.Zone+"/"+v.DataDisk].Users = nil
		delete(w.vms, p)
		return nil
	})
}

func link(r gce.Resource) string { return fmt.Sprint(r.Kind, " ", r.Zone, "/", r.Name) }

// Surroundings finds what is wanted by its name.
func (w *world) Surroundings(_ context.Context, s gce.Surroundings) (wanted, there []gce.Resource, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted = s.Resources()
	for _, r := range wanted {
		if is, found := w.around[link(r)]; found {
			if is.Users = nil; r.Kind == gce.Address {
				is.Users = w.users()
			}
			there = append(there, is)
		}
	}
	return wanted, there, nil
}

// InsertResource refuses what refers to something that is not there.
func (w *world) InsertResource(_ context.Context, r gce.Resource) error {
	return w.change(func() error {
		if is, found := w.around[link(r)]; found {
			if !is.Made {
				return errors.New("another one has that name")
			}
			return nil
		}
		needs := map[gce.ResourceKind]gce.ResourceKind{gce.BackendService: gce.HealthCheck,
			gce.ForwardingRule: gce.BackendService}[r.Kind]
		if _, found := w.around[link(gce.Resource{Kind: needs, Name: r.Name})]; needs != "" && !found {
			return fmt.Errorf("%s %s needs a %s", r.Kind, r.Name, needs)
		}
		if r.Kind == gce.ForwardingRule && len(w.users()) > 0 {
			return errors.New("the address is in use")
		}
		r.ID = w.id()
		w.around[link(r)] = r
		return nil
	})
}

// DeleteResource refuses what another refers to, and what nobody made for the cluster.
func (w *world) DeleteResource(_ context.Context, r gce.Resource) error {
	return w.change(func() error {
		is, found := w.around[link(r)]
		if !found {
			return nil
		}
		user := map[gce.ResourceKind]gce.ResourceKind{gce.HealthCheck: gce.BackendService,
			gce.Address: gce.ForwardingRule, gce.EndpointGroup: gce.BackendService,
			gce.BackendService: gce.ForwardingRule}[r.Kind]
		if _, used := w.around[link(gce.Resource{Kind: user, Name: r.Name})]; used {
			return fmt.Errorf("%s %s is in use", r.Kind, r.Name)
		}
		if is.ID != r.ID || !is.Made || !w.rules.onDemand && (!w.rules.all || len(w.vms) > 0) {
			w.t.Errorf("%s %s is deleted: %+v", r.Kind, r.Name, is)
		}
		delete(w.around, link(r))
		return nil
	})
}

func (w *world) DeleteDisk(_ context.Context, zone, name, id string) error {
	return w.change(func() error {
		d := w.disks[zone+"/"+name]
		switch {
		case d == nil:
			return nil
		case d.ID != id:
			return errors.New("another disk has that name")
		case len(d.Users) > 0:
			return errors.New("the disk is in use")
		}
		w.proven("a disk is deleted")
		if !w.rules.all && !w.rules.dropDisks {
			w.t.Errorf("disk %s is nobody's to delete", name)
		}
		delete(w.disks, zone+"/"+name)
		return nil
	})
}
