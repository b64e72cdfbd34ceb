package etcdmember

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// computeLists is what the Compute API has said of the cluster's VMs and disks, and what an agent remembers of that
// from one poll to the next. Only the loop touches it; what makes a list reads who this VM is, and nothing else.
type computeLists struct {
	api    ComputeAPI
	me     replica.Identity
	diskID func() string // of this VM's data disk; nil, or empty: it is not known

	compute   table.Compute
	vms       []replica.VM         // of the newest list, with their addresses
	instances map[string]bool      // all that the record ever named
	runs      map[string]table.Run // of lists that say of an instance that it is absent, or stopped

	making *listMaking // in the background; nil: none is
}

func newComputeLists(api ComputeAPI, me replica.Identity, diskID func() string) *computeLists {
	return &computeLists{api: api, me: me, diskID: diskID, instances: map[string]bool{}, runs: map[string]table.Run{}}
}

// ownDisk is the id of this VM's data disk; empty while it is not known.
func (c *computeLists) ownDisk() string {
	if c.diskID == nil {
		return ""
	}
	return c.diskID()
}

// list makes a list of what exists, at most once a listPeriod, and waits for it for listPatience: what takes longer is
// taken by a later call. A list that failed is made again at once: while nothing is formed it says whom to ask, and
// nobody seeds without.
func (c *computeLists) list(ctx context.Context, v record.View) {
	if c.making != nil && time.Since(c.making.begun) > listKept {
		c.drop() // nobody came for it
	}
	if c.making == nil && !c.begin(v) {
		return
	}
	patience := time.NewTimer(listPatience)
	defer patience.Stop()
	select {
	case <-c.making.done:
		c.take()
	case <-patience.C:
		c.miss()
	case <-ctx.Done():
	}
}

// collect takes the list that is made, if it is there, and does not wait for it.
func (c *computeLists) collect() {
	select {
	case <-c.making.done:
		c.take()
	default:
	}
}

// begin makes a list in the background, unless the newest is younger than a listPeriod.
func (c *computeLists) begin(v record.View) bool {
	if c.compute.Second.Err == nil && time.Since(c.compute.Second.Time) < listPeriod {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	m := &listMaking{begun: time.Now(), view: v, done: make(chan struct{}), cancel: cancel}
	c.making = m
	go func() {
		defer close(m.done)
		m.listing, m.vms = c.ask(ctx, v, m.begun)
	}()
	return true
}

// take has what the list that is made has come to, which is waited for. NoteRuns is given what the record said before.
func (c *computeLists) take() {
	m := c.making
	m.drop()
	c.making = nil
	c.put(m.listing)
	c.vms = m.vms
	table.NoteRuns(c.runs, m.listing, m.view, c.me.InstanceID)
}

// miss notes that a list takes longer than is waited for. The lists that there are hold for a while.
func (c *computeLists) miss() {
	if s := c.compute.Second; s.Err != nil || time.Since(s.Time) >= listKept {
		c.put(table.Listing{Time: c.making.begun, Err: fmt.Errorf("no answer yet, after %s",
			time.Since(c.making.begun).Round(time.Second))})
	}
}

// put makes a list the newest, and the newest that was whole the one before.
func (c *computeLists) put(l table.Listing) {
	if c.compute.Second.Err == nil && !c.compute.Second.Time.IsZero() {
		c.compute.First = c.compute.Second
	}
	c.compute.Second = l
}

// drop breaks off the list that is made; nothing of it counts.
func (c *computeLists) drop() {
	if c.making != nil {
		c.making.drop()
		c.making = nil
	}
}

// listMaking is a list that is made. Its results are read once done is closed.
type listMaking struct {
	begun   time.Time
	view    record.View // as it was when the list was begun
	done    chan struct{}
	cancel  context.CancelFunc
	listing table.Listing
	vms     []replica.VM
}

// drop ends the questions, and waits for their end.
func (m *listMaking) drop() {
	m.cancel()
	<-m.done
}

// ask asks for VMs and disks at the same time, and then for what the record knows in addition: each question takes GCE
// up to some seconds. It changes nothing of the lists' own.
func (c *computeLists) ask(ctx context.Context, v record.View, begun time.Time) (table.Listing, []replica.VM) {
	var vmsListed, disksListed table.Listing
	var vms []replica.VM
	var both sync.WaitGroup
	both.Go(func() { vmsListed, vms = c.listVMs(ctx, v) })
	both.Go(func() { c.listDisks(ctx, v, &disksListed) })
	both.Wait()
	l := vmsListed
	l.Time, l.Disks, l.Users, l.DisksErr = begun, disksListed.Disks, disksListed.Users, disksListed.DisksErr
	return l, vms
}

// listVMs lists the VMs: those with the cluster's label, then those that the record names in addition.
func (c *computeLists) listVMs(ctx context.Context, v record.View) (l table.Listing, vms []replica.VM) {
	vms, at, err := c.api.VMs(ctx)
	if err != nil {
		return table.Listing{Err: err}, nil
	}
	l.ServerTime = at
	for _, vm := range vms {
		i := table.Instance{Place: vm.Place, InstanceID: vm.InstanceID, Status: vm.Status, LastStop: vm.LastStop}
		l.Instances = append(l.Instances, i)
	}
	l.Instances = append(l.Instances, c.notListed(ctx, v, l)...)
	return l, vms
}

// notListed are the instances of the record that the list by label lacks and that may exist nevertheless: a label can
// be lost, and a list can be late. Each is asked for by its name, and counts as listed unless the API says of this very
// name that it does not exist, or has another instance under it. An API that does not find this very VM by its name
// either knows nothing.
func (c *computeLists) notListed(ctx context.Context, v record.View, l table.Listing) []table.Instance {
	var out []table.Instance
	for _, want := range currentInstances(v) {
		if want.InstanceID != c.me.InstanceID && !table.InList(l, want.InstanceID) {
			out = append(out, want) // a list that lacks this very VM is none, and stays none
		}
	}
	return askForEach(out, func() bool {
		me, found, err := c.api.VM(ctx, c.me.Place)
		return err == nil && found && me.InstanceID == c.me.InstanceID
	}, func(i *table.Instance) (gone bool) { return c.byName(ctx, v, i) })
}

// askForEach asks at the same time for each of what a list lacks, and leaves out what is gone. Where the API does not
// know what is known to exist, so that it cannot be trusted, all of it counts as it was.
func askForEach[T any](wanted []T, trusted func() bool, ask func(*T) (gone bool)) []T {
	if len(wanted) == 0 {
		return nil
	}
	trust, gone, answers := false, make([]bool, len(wanted)), slices.Clone(wanted)
	var asked sync.WaitGroup
	asked.Go(func() { trust = trusted() })
	for n := range answers {
		asked.Go(func() { gone[n] = ask(&answers[n]) })
	}
	asked.Wait()
	if !trust {
		return wanted
	}
	var there []T
	for n, a := range answers {
		if !gone[n] {
			there = append(there, a)
		}
	}
	return there
}

// byName asks for an instance by its name: either it is gone, or its state is as the API says.
func (c *computeLists) byName(ctx context.Context, v record.View, want *table.Instance) (gone bool) {
	vm, found, err := c.api.VM(ctx, want.Place)
	switch {
	case err != nil:
		return false
	case !found:
		return true
	case vm.InstanceID == want.InstanceID:
		want.Status, want.LastStop = vm.Status, vm.LastStop
		return false
	}
	return !mayPrecede(v, want.Place, vm.InstanceID, want.InstanceID)
}

// currentInstances are the newest of each place by the record, and the seeder of the newest claim.
func currentInstances(v record.View) []table.Instance {
	var out []table.Instance
	for p := range v.Replicas {
		if i := v.Last(p); i != nil {
			out = append(out, table.Instance{Place: p, InstanceID: i.InstanceID, Status: table.StatusUnknown})
		}
	}
	if e := v.Newest(); e != nil && e.Claim != nil {
		s := e.Claim.Seeder
		known := slices.ContainsFunc(out, func(i table.Instance) bool { return i.InstanceID == s.InstanceID })
		if !known {
			out = append(out, table.Instance{Place: s.Place, InstanceID: s.InstanceID, Status: table.StatusUnknown})
		}
	}
	return out
}

// mayPrecede: the record knows the instance as one that had the place, and not as one that took it after the wanted one
// had taken its last incarnation. Where the API shows it under the name, instead of its successor, it is late.
func mayPrecede(v record.View, p replica.Place, instanceID, wanted string) bool {
	all := v.Replicas[p]
	first := slices.IndexFunc(all, func(i record.Incarnation) bool { return i.InstanceID == instanceID })
	had := slices.ContainsFunc(all, func(i record.Incarnation) bool { return i.InstanceID == wanted })
	return first >= 0 &&
		(!had || slices.ContainsFunc(all[first:], func(i record.Incarnation) bool { return i.InstanceID == wanted }))
}

// noteInstances forgets both lists, and one that is made, when the record names an instance that it did not name
// before. Two lists that lack an instance prove it gone only if it had been made when they were: lists from before
// that would let a replica that boots later, and is then out of reach for a minute, be taken for one that was
// deleted. And when it names a restore that it did not: a VM that was TERMINATED in lists from before the order, or
// from before it was accepted, which is when it begins to stop anybody, may have been started since, without having
// seen that.
func (c *computeLists) noteInstances(v record.View) {
	unknown := false
	see := func(id string) {
		unknown = unknown || !c.instances[id]
		c.instances[id] = true
	}
	for _, e := range v.Epochs {
		if e.Claim != nil {
			see(e.Claim.Seeder.InstanceID)
		}
	}
	for _, incarnations := range v.Replicas {
		for _, i := range incarnations {
			see(i.InstanceID)
		}
	}
	for _, o := range v.Orders {
		if o.Restore != nil {
			see(fmt.Sprintf("order %d, accepted %t", o.Number, o.Accepted != nil))
		}
	}
	if unknown {
		c.drop()
		c.compute = table.Compute{}
		table.ForgetStops(c.runs)
	}
}
