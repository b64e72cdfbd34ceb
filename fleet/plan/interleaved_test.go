package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/replica"
)

// Commands that crash after some steps, each followed by another one that is made for another wish, and by one in the
// end that is left to finish. The address of a load balancer on demand has one user at most, it is given to somebody
// before anything else is done, and in the end it has the one that it is to have.
func TestCommandsThatFollowOnesThatCrashedLeaveTheAddressServed(t *testing.T) {
	outcome := map[string]int{}
	for n := range *walks / 2 {
		seed := *first + uint64(n)
		k := walk{world: newWorld(t, seed), others: true}
		if k.balancer == nil || len(k.places()) == 0 {
			continue
		}
		if err := k.interleaved(); err != nil {
			t.Fatalf("-seed %d -walks 2: %s %+v:\n%s\n%v", seed, k.wish.Kind, k.wish, strings.Join(k.log, "\n"), err)
		}
		outcome[string(k.wish.Kind)+" "+k.end]++
	}
	for _, kind := range []plan.Kind{plan.Add, plan.Remove, plan.Replace, plan.Roll, plan.Create} {
		if outcome[string(kind)+" done"] < *walks/200 {
			t.Errorf("only %d of %d walks carried %s out: %v", outcome[string(kind)+" done"], *walks, kind, outcome)
		}
	}
	t.Log(outcome)
}

// Another command's VM is not in the lists yet by which the only master is taken away to be made anew. Then it is, and
// has never been a member: it can neither lead nor be rolled, and there is no load balancer for two. The master comes
// back all the same, and then the address moves.
func TestTheOnlyMasterComesBackWhoeverCameMeanwhile(t *testing.T) {
	for _, wish := range []plan.Wish{{Kind: plan.Roll, Image: newImage}, {Kind: plan.Replace, InPlace: true}} {
		w := &world{t: t, vms: map[replica.Place]*vm{}, disks: map[string]*plan.Disk{}, rec: plan.Record{Wanted: 1},
			member: map[replica.Place]*member{}, balancer: &balancer{attached: map[replica.Place]string{}}}
		w.makes(place(0), endpoint)
		w.tick()
		wish.Name, wish.Interrupt = place(0).Name, true
		wish, err := plan.Resolve(wish, w.inventory(false))
		if err != nil {
			t.Fatal(err)
		}
		before := w.inventory(false)
		w.rec.Wanted = 2
		w.makes(place(1), "")
		before.Record.Wanted = 2
		p, err := plan.Make(wish, before)
		if err != nil || p.Steps[0].Act != plan.DeleteVM || w.take(p.Steps[0]) != nil {
			t.Fatalf("%s: %+v, %v", wish.Kind, p.Steps, err)
		}
		if wish, err = plan.Resolve(wish, w.inventory(false)); err != nil { // it crashed, and is run again
			t.Fatal(err)
		}
		var took []string
		for range 40 {
			p, err := plan.Make(wish, w.inventory(false))
			if err != nil {
				t.Fatalf("%s: after %s: %v", wish.Kind, strings.Join(took, "; "), err)
			}
			if len(p.Steps) == 0 {
				break
			}
			took = append(took, words(plan.Plan{Steps: p.Steps[:1]}))
			if err := w.take(p.Steps[0]); err != nil {
				t.Fatalf("%s: %s: %v", wish.Kind, strings.Join(took, "; "), err)
			}
		}
		if took[0] != "create-vm master-a" || w.balancer.user != "rule" || !w.alive(place(0)) || !w.alive(place(1)) {
			t.Errorf("%s: %s; the address is used by %q", wish.Kind, strings.Join(took, "; "), w.balancer.user)
		}
	}
}

// makes is what commands make of a new replica.
func (w *world) makes(p replica.Place, address string) {
	_ = w.take(plan.Step{Act: plan.CreateDisk, Place: p, Disk: p.Name + "-data"})
	_ = w.take(plan.Step{Act: plan.CreateVM, Place: p, Disk: p.Name + "-data", Image: "image-1", Address: address})
}

// interleaved begins some wishes, and carries the last one out.
func (k *walk) interleaved() error {
	for range 1 + k.rng.IntN(4) {
		k.another()
		k.log = append(k.log, "another command: "+string(k.wish.Kind))
		if k.resolve(false) != nil {
			continue
		}
		for range k.rng.IntN(14) {
			if p, err := plan.Make(k.resolved, k.inventory(false)); err != nil || len(p.Steps) == 0 {
				break
			} else if err := k.act(p.Steps[0], true); err != nil {
				return fmt.Errorf("a command that stops: %w", err)
			}
		}
	}
	k.another()
	if k.wish.Kind == plan.Delete {
		k.wish.Kind = plan.Create
	}
	return k.run()
}

// another draws a wish that has nothing of the one before it.
func (k *walk) another() {
	k.wish, k.began, k.awaits = plan.Wish{}, false, false
	k.choose()
	for k.wish.Kind == plan.Delete {
		k.wish = plan.Wish{}
		k.choose()
	}
}
