package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/fleet/plan"
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
