package table

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// This file is what the record says of who has stopped. The agents that end an epoch and the commands that show whom a
// restore waits for, and power off their VMs, ask here alone. What the record does not hold, the agents ask of
// witnesses (classify_silence.go).

// NotStopped are the instances that took an incarnation of the epoch, and of which neither they nor a person have said
// that they stopped. Each stands for its last incarnation of the epoch; those of a place begin with the newest. silent
// are those of which the order to restore says so, restorer is the instance that carries it out.
func NotStopped(v record.View, e *record.Epoch, silent []string, restorer string) (out []record.Incarnation) {
	for _, p := range v.Places() {
		all := v.Replicas[p]
		for n, i := range slices.Backward(all) {
			if i.Epoch != e.Number || nextOf(i, all[n+1:]) != nil {
				continue
			}
			if _, said := saidStopped(e, i, silent, restorer); !said {
				out = append(out, i)
			}
		}
	}
	return out
}

// nextOf is the first of the later incarnations of its place that the same instance took in the same epoch; nil: there
// is none. The last one speaks for the instance.
func nextOf(i record.Incarnation, later []record.Incarnation) *record.Incarnation {
	n := slices.IndexFunc(later, func(l record.Incarnation) bool {
		return l.InstanceID == i.InstanceID && l.Epoch == i.Epoch
	})
	if n < 0 {
		return nil
	}
	return &later[n]
}

// saidStopped: the instance of an incarnation has said that it stopped, by its object; or a person has, in the very
// order that is to be carried out, because what was said for an earlier order is about an earlier day. The restorer
// stops its own member before it ends the epoch.
func saidStopped(e *record.Epoch, i record.Incarnation, silent []string, restorer string) (*record.Stopped, bool) {
	if s := e.StoppedBy(i); s != nil {
		return s, true
	}
	return nil, i.InstanceID == restorer || slices.Contains(silent, i.InstanceID)
}

// VMStopped is when `quorate restore --stop-vms` had stopped the instance of an incarnation, for an order in force that
// ends the epoch; ok is false where it did not, or did so before the instance took this incarnation.
func (o Orders) VMStopped(i record.Incarnation, ends uint64) (at time.Time, ok bool) {
	for _, x := range o.All {
		stop, noted := x.VMStops[i.InstanceID]
		if !noted || x.Restore == nil || x.Restore.Ends != ends || i.Written.After(stop.Written) {
			continue
		}
		if !ok || stop.Written.After(at) {
			at, ok = stop.Written, true
		}
	}
	return at, ok
}
