package record

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// The methods below answer what is asked of a record in more than one place, so that agents and commands cannot come
// to different answers. They only read. A pointer leads into the View, and is nil where there is no such thing.

// Formed is the outcome by which the epoch was formed. It may be asked of no epoch, too.
func (e *Epoch) Formed() *Formed {
	if e == nil || e.Outcome == nil {
		return nil
	}
	return e.Outcome.Formed
}

// NumberOf is an epoch's number; 0: there is none.
func NumberOf(e *Epoch) uint64 {
	if e == nil {
		return 0
	}
	return e.Number
}

// Newest is the epoch with the highest number.
func (v View) Newest() *Epoch { return v.newest(func(*Epoch) bool { return true }) }

// NewestFormed is the newest epoch that was formed, whether or not it has ended. What lies below it decides nothing.
func (v View) NewestFormed() *Epoch {
	return v.newest(func(e *Epoch) bool { return e.Formed() != nil })
}

// Open is the newest epoch, if it is formed and has not ended.
func (v View) Open() *Epoch {
	if e := v.Newest(); e.Formed() != nil && e.Closed == nil {
		return e
	}
	return nil
}

// Epoch is the one with this number.
func (v View) Epoch(n uint64) *Epoch { return v.newest(func(e *Epoch) bool { return e.Number == n }) }

// OfCluster is the epoch that was formed with an etcd cluster id; 0 is nobody's.
func (v View) OfCluster(id MemberID) *Epoch {
	return v.newest(func(e *Epoch) bool { f := e.Formed(); return f != nil && f.ClusterID == id && id != 0 })
}

// newest is the newest of the epochs of which is holds.
func (v View) newest(is func(*Epoch) bool) *Epoch {
	for n := range slices.Backward(v.Epochs) {
		if e := &v.Epochs[n]; is(e) {
			return e
		}
	}
	return nil
}

// Places are those that ever had an incarnation, sorted.
func (v View) Places() []replica.Place {
	return slices.SortedFunc(maps.Keys(v.Replicas), replica.ComparePlaces)
}

// Incarnation is number k of a place.
func (v View) Incarnation(p replica.Place, k uint64) *Incarnation {
	all := v.Replicas[p]
	if n := slices.IndexFunc(all, func(i Incarnation) bool { return i.Number == k }); n >= 0 {
		return &all[n]
	}
	return nil
}

// Last is the newest incarnation of a place, confirmed or pending: who stands there now.
func (v View) Last(p replica.Place) *Incarnation {
	all := v.Replicas[p]
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// Current are the newest confirmed incarnation of a place and the pending ones after it; all, where none is confirmed.
func (v View) Current(p replica.Place) []Incarnation {
	all := v.Replicas[p]
	for n, i := range slices.Backward(all) {
		if i.Started != nil {
			return all[n:]
		}
	}
	return all
}
