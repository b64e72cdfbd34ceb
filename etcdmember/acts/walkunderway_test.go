package acts

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

// The walk takes the real acts. Each runs up to its next write and stands there: what comes next, that write or
// anything else, is an event of the walk.

// underWay is an act that stands before one of its writes.
type underWay struct {
	goOn func() (Step, bool) // makes the write, and runs up to the next one; false: the act is over
	end  func()              // ends it where it stands
}

// brokenOff is the panic by which an act ends where it stands.
type brokenOff struct{}

// begin runs an act of this VM's agent up to its first write.
func (w *world) begin(v *vm, act func() error) {
	next, end := iter.Pull(func(yield func(Step) bool) {
		defer func() {
			if r := recover(); r != nil && r != any(brokenOff{}) {
				panic(r)
			}
		}()
		v.pause = func(s Step) {
			if !yield(s) {
				panic(brokenOff{})
			}
		}
		act() // what it returns is written nowhere: the agent observes again
	})
	v.underWay = &underWay{next, end}
	w.goOnWith(v)
}

// goOnWith makes the write before which the act stands.
func (w *world) goOnWith(v *vm) {
	if _, more := v.underWay.goOn(); !more {
		v.underWay = nil
	}
}

// breakOff ends the act that is under way, if there is one.
func (v *vm) breakOff() {
	if u := v.underWay; u != nil {
		v.underWay = nil
		u.end()
	}
}

// busy: an act is under way.
func (v *vm) busy() bool { return v.underWay != nil }

// stands is a moment in the middle of what the world does for an act.
func (v *vm) stands(s Step) {
	if v.busy() {
		v.pause(s)
	}
}

// newActor is what the agent of a VM takes its acts with, when it starts: it has read agent.json.
func (w *world) newActor(v *vm) *Actor {
	a := &Actor{Log: slog.New(slog.DiscardHandler), Me: w.me(v), Record: walkRecord{w, v}, Disk: walkDisk{w, v},
		Member: walkMember{w, v}, Cluster: walkCluster{w, v}, Agent: NewAgentStore(walkDisk{w, v}.writeAgent),
		DiskID: func() string { return v.disk.id }, Now: func() time.Time { return w.now }, Choosing: new(sync.Mutex),
		AtStep: func(s Step, m Moment) {
			if m == Before {
				v.stands(s)
			}
		}}
	a.Agent.File, a.Agent.Err = v.disk.agent, v.disk.agentErr
	if a.Agent.Err != nil {
		a.Agent.File = table.AgentFile{}
	}
	return a
}

// take begins the act of a plan. The real agent takes no act of these three.
func (w *world) take(v *vm, f table.Facts, p table.Plan) {
	switch p.Act {
	case table.ActKeep, table.ActWait, table.ActHalt:
		return
	}
	w.begin(v, func() error {
		err := v.actor.Take(context.Background(), f, p)
		w.tried(v, f, p, err)
		return err
	})
}

// tried notes how an act ended, as the agent does.
func (w *world) tried(v *vm, f table.Facts, p table.Plan, err error) {
	if p.Act == table.ActAccept {
		v.tries.Unfit = table.Unfit{}
	}
	if err == nil {
		v.tries.Failed = table.Failure{}
		return
	}
	v.tries.Failed = v.tries.Failed.Again(p, err)
	if p.Act == table.ActAccept {
		v.tries.Unfit = table.Unfit{Order: p.OrderNumber, Why: err.Error(), Until: w.now}
		if f.Directory.Running && table.AnswersQuorum(f) {
			v.tries.Unfit.Until = w.now.Add(time.Duration(w.random.IntN(60)) * time.Second)
		}
	}
}

// countStart notes that the agent starts its member, which may end at once.
func (w *world) countStart(v *vm, joins bool) {
	v.tries.Starts = v.tries.Starts.Again(joins, w.now)
}

// errWalk is any error. What it is about may have taken effect.
var errWalk = errors.New("not now")
