package order

import (
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Stops decides which VMs are stopped for a restore: those that it waits for and that have had the time to stop by
// themselves. A VM is known by its instance id, so neither one that has followed under its name nor the restorer's own
// is touched.
type Stops struct {
	// due is when each instance that is waited for may be stopped, by its id.
	due map[string]time.Time
	// running are the ids of those that are being stopped.
	running []string
}

// NewStops begins without any.
func NewStops() *Stops { return &Stops{due: map[string]time.Time{}} }

// Due are those whose time is over. That of others begins with the first call that finds them waited for.
func (s *Stops) Due(p Progress, now time.Time) (due []record.Incarnation) {
	for _, i := range p.NotStopped {
		at, known := s.due[i.InstanceID]
		switch {
		case !known:
			s.due[i.InstanceID] = now.Add(StopAfter)
		case !now.Before(at) && !slices.Contains(s.running, i.InstanceID):
			due = append(due, i)
		}
	}
	return due
}

// Stop is a VM that is to be stopped now.
type Stop struct {
	record.Incarnation
	VM replica.VM
	// Again: it is stopped already, by another. The end of an operation of ours is the proof, and it ends at once.
	Again bool
}

// Begin says which of those that are due are stopped now, by a list of the VMs, and takes each for being stopped until
// Ended.
func (s *Stops) Begin(r Restore, due []record.Incarnation, list []replica.VM) (out []Stop) {
	for _, i := range due {
		n := slices.IndexFunc(list, func(vm replica.VM) bool { return vm.InstanceID == i.InstanceID })
		if n < 0 || list[n].Status == "STOPPING" {
			continue
		}
		stopped := table.RunKindOf(list[n].Status) == table.RunStopped
		if stopped && r.VMStopped(i) {
			continue
		}
		s.running = append(s.running, i.InstanceID)
		out = append(out, Stop{Incarnation: i, VM: list[n], Again: stopped})
	}
	return out
}

// Ended notes that an operation has ended, well or not: one that is still waited for is tried again.
func (s *Stops) Ended(id string, now time.Time) {
	s.running = slices.DeleteFunc(s.running, func(x string) bool { return x == id })
	s.due[id] = now.Add(stopAgainAfter)
}
