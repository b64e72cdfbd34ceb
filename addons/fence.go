package addons

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/addons/plan"
)

// fencePeriod is how old the knowledge may be that no newer set writes, when a write is sent.
const fencePeriod = time.Second

// fence is the knowledge that no other set has taken the inventory. Several goroutines may ask it.
//
// A claim does not stop what is on its way. So each write has a deadline, which the apiserver keeps too, and a set
// deletes nothing for longer than that after its claim: whatever the set before has still made is there by then, and
// stands in the inventory. A manager that stands still between the check and its write, for longer than all that, can
// still make an object that stands in no inventory.
type fence struct {
	mu sync.Mutex
	at time.Time
}

// passed notes an answer to a request that was sent at a time.
func (f *fence) passed(asked time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = asked
}

// check reads the inventory again where the knowledge is old. Who waits meanwhile wants the same answer.
func (f *fence) check(ctx context.Context, c *cluster, s plan.Set) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := time.Now()
	if asked.Sub(f.at) < fencePeriod {
		return nil
	}
	_, inv, err := c.inventory(ctx)
	if err != nil {
		return err
	}
	if inv == nil || plan.Stand(inv, s) != plan.Current {
		return errOvertaken
	}
	f.at = asked
	return nil
}
