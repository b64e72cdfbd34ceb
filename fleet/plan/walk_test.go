package plan_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/replica"
)

var (
	walks = flag.Int("walks", 10_000, "how many random plans are carried out")
	first = flag.Uint64("seed", 1, "the seed of the first")
)

// newImage is what most rolls want; all VMs begin with another.
const newImage = "image-2"

// Each walk makes a random cluster and a random wish, and carries the wish out one step at a time against an API that
// lies, with steps that fail and a command that crashes and is run again. No VM may go that the wish does not name, no
// step may cost the quorum, and in the end the wish is fulfilled and nothing is left over.
func TestRandomPlansRemoveNobodyElseAndLeaveNothing(t *testing.T) {
	outcome := map[string]int{}
	for n := range *walks {
		seed := *first + uint64(n)
		k := walk{world: newWorld(t, seed)}
		if err := k.run(); err != nil {
			t.Fatalf("-seed %d -walks 1: %s %+v:\n%s\n%v", seed, k.wish.Kind, k.wish, strings.Join(k.log, "\n"), err)
		}
		outcome[string(k.wish.Kind)+" "+k.end]++
	}
	for _, kind := range []plan.Kind{plan.Add, plan.Remove, plan.Replace, plan.Roll, plan.Create, plan.Delete} {
		if outcome[string(kind)+" done"] < *walks/50 {
			t.Errorf("only %d of %d walks carried %s out: %v", outcome[string(kind)+" done"], *walks, kind, outcome)
		}
	}
	if outcome["remove "+plan.WouldLoseQuorum] == 0 && *walks >= 10_000 {
		t.Error("no removal was refused for the quorum: the walks no longer try")
	}
	t.Log(outcome)
}

type walk struct {
	*world
	wish plan.Wish
	log  []string
	end  string
	// awaits: the last step was to wait for a replica.
	awaits bool
	// began: a VM was deleted for the wish.
	began bool
	// others: other commands came before, and what they have begun is there.
	others bool
	// resolved is the wish as the command that runs now has completed it.
	resolved plan.Wish
	// orphan is the data disk of a replica that another command has begun, and that has no VM; nil: there is none.
	orphan *plan.Disk
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), vms: map[replica.Place]*vm{}, disks: map[string]*plan.Disk{},
		member: map[replica.Place]*member{}, lied: truth}
	n := w.rng.IntN(6)
	w.rec.Wanted = max(1, n)
	for k := range n {
		p := replica.Place{Zone: zones[w.rng.IntN(3)], Name: fmt.Sprintf("master-%c", 'a'+k)}
		disk := p.Name + "-data"
		_ = w.take(plan.Step{Act: plan.CreateDisk, Place: p, Disk: disk})
		if w.rng.IntN(2) == 0 {
			w.disks[p.Zone+"/"+disk].Replica = "" // made by hand
		}
		if err := w.take(plan.Step{Act: plan.CreateVM, Place: p, Disk: disk, Image: "image-1"}); err != nil {
			t.Fatal(err)
		}
		w.vms[p].Young = false
	}
	for range 5 {
		w.tick()
	}
	w.balance()
	for _, p := range w.places() {
		w.vms[p].dead = w.rng.IntN(8) == 0
		if w.rng.IntN(2) == 0 {
			w.vms[p].Differs = []plan.Difference{{Replica: p, Field: "gce.machineType", Found: "small", Wanted: "large"}}
		}
	}
	return w
}

// begins leaves what a command leaves whose VM could not be made.
func (k *walk) begins() {
	if k.orphan != nil || len(k.member) == 0 || k.rng.IntN(3) > 0 {
		return
	}
	p := replica.Place{Zone: zones[k.rng.IntN(3)], Name: "prod-1-master-begun"}
	_ = k.take(plan.Step{Act: plan.CreateDisk, Place: p, Disk: p.Name + "-data"})
	k.orphan = k.disks[p.Zone+"/"+p.Name+"-data"]
}

func (k *walk) run() error {
	if !k.others {
		k.begins()
	}
	k.choose()
	if len(k.member) == 0 && k.wish.Kind != plan.Create {
		k.wish = plan.Wish{Kind: plan.Create}
		k.choose()
	}
	if err := k.resolve(false); err != nil {
		return k.refused(err)
	}
	for round := range 120 {
		lies := round < 60 && k.rng.IntN(2) == 0
		k.lied = truth
		i := k.inventory(lies)
		p, err := plan.Make(k.resolved, i)
		if err != nil {
			k.log = append(k.log, "refused: "+err.Error())
			if !lies && round > 60 {
				return k.refused(err)
			}
			k.tick()
			continue
		}
		if len(p.Steps) == 0 {
			if lies {
				continue
			}
			return k.done()
		}
		if err := k.act(p.Steps[0], round < 60); err != nil {
			return err
		}
		if k.rng.IntN(3) == 0 {
			k.tick()
		}
		if round < 60 && k.rng.IntN(4) == 0 {
			k.crash()
		}
	}
	if voters, _ := k.votes(); k.awaits && !k.hasQuorum() && !(k.began && voters == 1) {
		k.end = "waits" // for a cluster that stopped before: a command gives up after a time
		return nil
	}
	if k.awaits && k.wish.Kind == plan.Roll && k.someoneIsDead() {
		k.end = "waits" // for one that was as it is wanted, and may come
		return nil
	}
	if k.awaits && k.others && !(k.balancer.user == "" && k.someoneCouldServe()) {
		k.end = "waits" // for one that another command has ordered out, or that is dead
		return nil
	}
	return errors.New("it comes to no end")
}

func (k *walk) someoneIsDead() bool {
	return slices.ContainsFunc(k.places(), func(p replica.Place) bool { return k.vms[p].dead })
}

// choose draws a wish.
func (k *walk) choose() {
	kinds := []plan.Kind{plan.Add, plan.Remove, plan.Replace, plan.Roll, plan.Create, plan.Delete}
	w := &k.wish
	if w.Kind == "" {
		w.Kind = kinds[k.rng.IntN(len(kinds))]
	}
	w.Zones, w.Prefix, w.Count = zones, "prod-1-master", 1+k.rng.IntN(5)
	k.drawSuffixes()
	all := k.places()
	switch w.Kind {
	case plan.Remove, plan.Replace:
		if len(all) > 0 {
			p := all[k.rng.IntN(len(all))]
			w.Name = p.Name
			if w.Kind == plan.Remove && k.rng.IntN(3) == 0 {
				w.Name, w.Zone = "", p.Zone
			}
		}
		if w.Kind == plan.Remove && k.orphan != nil && k.rng.IntN(2) == 0 {
			w.Name, w.Zone = k.orphan.Replica, ""
		}
		w.DropDisk, w.Interrupt = k.rng.IntN(2) == 0, k.rng.IntN(2) == 0
		if w.Kind == plan.Replace && k.rng.IntN(2) == 0 {
			w.InPlace, w.NewDisk = true, k.rng.IntN(2) == 0
		}
	case plan.Roll:
		w.Image, w.Interrupt = newImage, true
		if k.rng.IntN(3) == 0 {
			w.Image = "image-1"
		}
	case plan.Create:
		w.Interrupt = k.balancer != nil
		at := k.rng.IntN(3)
		w.Zones = slices.Delete(slices.Clone(zones), at, at+k.rng.IntN(2)) // all of them, or but one
	case plan.Add:
		w.Interrupt = k.rng.IntN(4) > 0
		if k.rng.IntN(2) == 0 {
			w.Name = "extra"
		} else {
			w.Zone = zones[k.rng.IntN(3)]
		}
	}
}

// drawSuffixes gives the command that runs other names to choose from than the one before it had.
func (k *walk) drawSuffixes() {
	k.wish.Suffixes = nil
	for range 12 {
		k.wish.Suffixes = append(k.wish.Suffixes, fmt.Sprintf("%04x", k.rng.IntN(1<<16)))
	}
}

func (k *walk) resolve(lies bool) error {
	r, err := plan.Resolve(k.wish, k.inventory(lies))
	if err == nil {
		k.resolved = r
		k.log = append(k.log, fmt.Sprintf("resolved: %s new %s VM %s disk %s", r.Place, r.New, r.InstanceID, r.DiskID))
	}
	return err
}

// refused ends a walk whose wish cannot be carried out. Nothing may have been lost by then, which act checks.
func (k *walk) refused(err error) error {
	var r *plan.Refusal
	if !errors.As(err, &r) || r.Why == "" || r.Next == "" {
		return fmt.Errorf("not a refusal with a reason and a next step: %w", err)
	}
	k.end = r.Name
	if voters, touch := k.votes(); k.wish.Interrupt && k.began && voters == 1 && touch == 0 {
		return errors.New("the only replica was taken away for its replacement, and stays away")
	}
	return nil
}

// crash has the command run again from the start, with the same words, unless it was done: then it would do it again.
func (k *walk) crash() {
	p, err := plan.Make(k.resolved, k.inventory(false))
	if err != nil || len(p.Steps) == 0 {
		return
	}
	before := k.resolved
	k.drawSuffixes()
	if k.resolve(false) != nil {
		return
	}
	if k.others {
		return
	}
	if before.Place != k.resolved.Place || before.InstanceID != k.resolved.InstanceID ||
		before.New != k.resolved.New && len(k.begun(before.New)) > 0 {
		k.t.Fatalf("after a crash another one is meant:\n%s\n%+v\n%+v", strings.Join(k.log, "\n"), before, k.resolved)
	}
}

// begun is what there is of a new replica.
func (k *walk) begun(p replica.Place) (out []string) {
	for key, d := range k.disks {
		if d.Replica == p.Name {
			out = append(out, key)
		}
	}
	return out
}

// act takes a step, or fails to before or after its effect, and checks what it did.
func (k *walk) act(s plan.Step, faults bool) error {
	k.log = append(k.log, fmt.Sprintf("lie %d: %+v", k.lied, s))
	if faults && k.rng.IntN(6) == 0 {
		return nil // it failed before its effect
	}
	if err := k.mayServe(s); err != nil {
		return err
	}
	k.awaits = s.Act == plan.AwaitJoined
	quorum := k.hasQuorum()
	v := k.vms[s.Place]
	if s.Act == plan.DeleteVM && v != nil && v.InstanceID == s.InstanceID {
		if err := k.mayDelete(s, v); err != nil {
			return err
		}
		k.began = true
	}
	if s.Act == plan.CreateVM && k.wish.Kind == plan.Create && !slices.Contains(k.wish.Zones, s.Place.Zone) {
		return fmt.Errorf("VM %s is made in a zone that was not named", s.Place)
	}
	if s.Act == plan.DeleteDisk {
		if err := k.mayDeleteDisk(s); err != nil {
			return err
		}
		mine := s.DiskID == k.resolved.DiskID && k.wish.DropDisk && k.member[k.resolved.Place] == nil
		if k.wish.Kind != plan.Delete && !mine {
			return fmt.Errorf("the disk %s (%s) is nobody's to delete", s.Disk, s.DiskID)
		}
	}
	err := k.take(s)
	if err != nil {
		k.log = append(k.log, "failed: "+err.Error())
	}
	voters, _ := k.votes()
	if quorum && !k.hasQuorum() && k.wish.Kind != plan.Delete && !(voters == 1 && k.wish.Interrupt) {
		return fmt.Errorf("%s cost the quorum", s.Act)
	}
	return nil
}

// mayDeleteDisk: the disk of a place that the record knows goes only once the order that takes the place out is done.
func (k *walk) mayDeleteDisk(s plan.Step) error {
	known := slices.ContainsFunc(k.rec.Replicas, func(i plan.Incarnation) bool { return i.DiskID == s.DiskID })
	if l := k.leave(s.Place); k.wish.Kind != plan.Delete && known && (l == nil || !l.Done) {
		return fmt.Errorf("the disk %s (%s) goes, and its replica was not ordered out", s.Disk, s.DiskID)
	}
	return nil
}

// mayDelete says whose VM may go: the one that the wish named, once its member has left, or while its place is kept.
func (k *walk) mayDelete(s plan.Step, v *vm) error {
	staysMember := k.wish.InPlace || k.wish.Kind == plan.Roll
	switch {
	case k.wish.Kind == plan.Delete:
	case k.wish.Kind == plan.Roll && v.Image == k.wish.Image && v.Differs == nil:
		return errors.New("a VM was rolled twice")
	case k.wish.Kind == plan.Roll:
	case k.wish.Kind != plan.Remove && k.wish.Kind != plan.Replace, s.InstanceID != k.resolved.InstanceID:
		return fmt.Errorf("VM %s (%s) is nobody's to delete", s.Place, s.InstanceID)
	case !staysMember && k.member[s.Place] != nil:
		return fmt.Errorf("VM %s went before its member", s.Place)
	}
	return nil
}

// done checks that the wish is fulfilled and nothing is left over.
func (k *walk) done() error {
	k.end = "done"
	for range 4 {
		k.tick()
	}
	w := k.resolved
	if err := k.served(); err != nil || k.others { // what others have left is not this one's
		return err
	}
	if p, err := plan.Make(w, k.inventory(false)); err != nil || len(p.Steps) > 0 {
		return fmt.Errorf("done, and yet: %v %+v", err, p.Steps)
	}
	for _, p := range k.places() {
		if v := k.vms[p]; !v.dead && !k.alive(p) {
			return fmt.Errorf("VM %s runs and is no member", p)
		}
	}
	for key, d := range k.disks {
		kept := d.ID == w.DiskID && (w.NewDisk || !w.DropDisk) || d == k.orphan && d.ID != w.DiskID
		if d.User == "" && !kept {
			return fmt.Errorf("disk %s is left over", key)
		}
	}
	switch w.Kind {
	case plan.Add:
		return k.isMember(w.New)
	case plan.Remove:
		if k.vms[w.Place] != nil || k.member[w.Place] != nil {
			return fmt.Errorf("%s is still there", w.Place)
		}
	case plan.Replace:
		if w.InPlace {
			if v := k.vms[w.Place]; v == nil || v.InstanceID == w.InstanceID {
				return fmt.Errorf("%s was not replaced", w.Place)
			}
			return k.isMember(w.Place)
		}
		if k.vms[w.Place] != nil {
			return fmt.Errorf("%s is still there", w.Place)
		}
		return k.isMember(w.New)
	case plan.Roll:
		for p, v := range k.vms {
			if (v.Image != w.Image || v.Differs != nil) && k.leave(p) == nil {
				return fmt.Errorf("%s was not rolled", p)
			}
		}
	case plan.Create:
		if len(k.vms) < w.Count {
			return fmt.Errorf("%d of %d VMs are there", len(k.vms), w.Count)
		}
	case plan.Delete:
		if len(k.vms)+len(k.disks) > 0 {
			return fmt.Errorf("%d VMs and %d disks are left", len(k.vms), len(k.disks))
		}
	}
	return nil
}

func (k *walk) isMember(p replica.Place) error {
	m := k.member[p]
	if m == nil || !k.alive(p) || k.rec.Wanted >= 3 && len(k.member) >= 3 && !m.voter {
		return fmt.Errorf("%s has not joined", p)
	}
	return nil
}
