package etcdmember

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// act is the writes of an act in their order, as act.go, form.go and join.go make them. A write that returns false ends
// the act.
func (w *world) act(v *vm, f table.Facts, p table.Plan) []func() bool {
	set := func(change func(a *table.AgentFile)) func() bool {
		return func() bool { return v.setAgent(change) }
	}
	token := claimToken(f, p.Epoch)
	switch p.Act {
	case table.ActClaim:
		return []func() bool{func() bool { return w.claim(v, p) }}
	case table.ActSeed:
		return slices.Concat(w.takeIncarnation(v, p), []func() bool{
			set(func(a *table.AgentFile) {
				a.Phase, a.Epoch, a.Token, a.MemberID = table.PhaseSeeding, p.Epoch, token, 0
			}),
			func() bool { return w.makeSeed(v, p.Epoch) },
			func() bool { return w.finish(v) },
		}, w.form(v, p.Epoch))
	case table.ActForm:
		return w.form(v, p.Epoch)
	case table.ActFormedAgain:
		return []func() bool{w.write(v, func() bool {
			return w.outcome(p.Epoch, record.Outcome{Formed: &record.Formed{ClusterID: p.ClusterID,
				MemberID: p.MemberID}})
		})}
	case table.ActAbandon:
		return []func() bool{w.write(v, func() bool {
			return w.outcome(p.Epoch, record.Outcome{Abandoned: &record.Abandoned{By: v.id, Why: p.Reason}})
		})}
	case table.ActArchive:
		return []func() bool{
			set(reset),
			func() bool { v.disk.archive(); return true },
		}
	case table.ActTakeIncarnation:
		return w.takeIncarnation(v, p)
	case table.ActConfirmIncarnation:
		return []func() bool{w.write(v, func() bool { return w.confirm(v, p.Incarnation, p.Epoch, p.MemberID) })}
	case table.ActStart:
		return []func() bool{
			set(func(a *table.AgentFile) { a.Phase, a.MemberID, a.StoppedFor = table.PhaseStarted, p.MemberID, 0 }),
			func() bool { return w.start(v) },
		}
	case table.ActStop:
		return []func() bool{func() bool { v.etcd = nil; return true }}
	case table.ActRemoveMember:
		return []func() bool{func() bool { return w.request(v, logEntry{kind: remove, id: p.MemberID}) }}
	case table.ActMarkAdding:
		return []func() bool{set(func(a *table.AgentFile) {
			a.Phase, a.Epoch, a.Token, a.MemberID = table.PhaseAdding, p.Epoch, token, 0
		})}
	case table.ActAddLearner:
		id := record.MemberID(v.place+1)<<40 | record.MemberID(w.now.Unix()-t0.Unix())
		return []func() bool{
			func() bool { return w.request(v, logEntry{kind: addLearner, id: id, place: v.place}) },
			set(func(a *table.AgentFile) { a.Phase, a.MemberID = table.PhaseAdded, id }),
		}
	case table.ActStartJoined:
		return []func() bool{
			set(func(a *table.AgentFile) { a.Phase = table.PhaseStarted }),
			func() bool { return w.startJoined(v, p.MemberID) },
			func() bool { return w.finish(v) },
		}
	case table.ActWriteStopped:
		return w.writeStopped(v, f, p)
	case table.ActOrderRestore:

		shown := w.shows(p.Order, true)
		return []func() bool{w.write(v, func() bool {
			w.order(record.Order{Kind: record.OrderRestore, By: "row " + p.Row.String(), Restore: p.Order}, shown)
			return true
		})}
	case table.ActAccept:
		return []func() bool{w.write(v, func() bool {
			for i := range w.view.Orders {
				if o := &w.view.Orders[i]; o.Number == p.OrderNumber && o.Accepted == nil {
					o.Accepted = &record.Accepted{By: "agent", Time: w.now}
				}
			}
			return true
		})}
	case table.ActSettle:
		return []func() bool{w.write(v, func() bool { w.writeVerdict(v, p.OrderNumber, p.Closing); return true })}
	case table.ActCloseEpoch:
		return []func() bool{w.closeEpoch(v, p)}
	case table.ActRestore:
		return w.restore(v, f, p)
	case table.ActKeep, table.ActWait, table.ActHalt:
		return nil
	}
	panic(fmt.Sprintf("the walk does not know how to %s", p.Act))
}

// write is a create in the record: it may fail before or after it takes effect.
func (w *world) write(v *vm, create func() bool) func() bool {
	return func() bool {
		if w.unreadable(v) != nil {
			return false
		}
		ok := create()
		return ok && (w.calm || !w.chance(3))
	}
}

func (w *world) epoch(n uint64) *record.Epoch {
	for i := range w.view.Epochs {
		if w.view.Epochs[i].Number == n {
			return &w.view.Epochs[i]
		}
	}
	return nil
}

func (w *world) claim(v *vm, p table.Plan) bool {
	return w.write(v, func() bool {
		if w.epoch(p.Epoch) != nil {
			return true // lost: the next look shows the winner
		}
		w.view.Epochs = append(w.view.Epochs, record.Epoch{Number: p.Epoch, Claim: &record.Claim{
			Token: fmt.Sprintf("t%d.%d", p.Epoch, w.next()), MaxLearners: table.MaxLearners, Source: p.Source,
			Seeder: record.Seeder{Place: places[v.place], InstanceID: v.id}}})
		return true
	})()
}

// outcome creates an outcome and reports whether the record holds this very one.
func (w *world) outcome(n uint64, o record.Outcome) bool {
	e := w.epoch(n)
	if e == nil {
		return false
	}
	if e.Outcome == nil {
		e.Outcome = &o
		w.checkOutcome(e)
	}
	got := e.Outcome
	return o.Abandoned != nil || got.Formed != nil && *got.Formed == *o.Formed
}

func (w *world) takeIncarnation(v *vm, p table.Plan) []func() bool {
	place := places[v.place]
	return []func() bool{
		w.write(v, func() bool {
			mine := record.Incarnation{Place: place, Number: p.Incarnation, InstanceID: v.id, BootID: w.me(v).BootID,
				Epoch:    p.Epoch,
				MemberID: p.MemberID, DiskID: v.disk.id, Time: w.now, Written: w.now, EmptyDisk: v.disk.dir == nil}
			if got := w.incarnation(v.place, p.Incarnation); got != nil {
				return got.InstanceID == mine.InstanceID && got.BootID == mine.BootID && got.DiskID == mine.DiskID &&
					got.Epoch == mine.Epoch
			}
			w.view.Replicas[place] = append(w.view.Replicas[place], mine)
			return true
		}),
		func() bool {
			return v.setAgent(func(a *table.AgentFile) { a.Begin(w.me(v), p.Incarnation, "uid") })
		},
	}
}

func (w *world) incarnation(place int, k uint64) *record.Incarnation {
	for i := range w.view.Replicas[places[place]] {
		if inc := &w.view.Replicas[places[place]][i]; inc.Number == k {
			return inc
		}
	}
	return nil
}

func (w *world) confirm(v *vm, k, epoch uint64, id record.MemberID) bool {
	i := w.incarnation(v.place, k)
	if i == nil {
		return false
	}
	if i.Started == nil {
		i.Started = &record.Started{Epoch: epoch, MemberID: id, DiskID: v.disk.id, Time: w.now}
	}
	return true
}

// makeSeed begins the directory of a seed: the same token makes the same cluster and member. Until it is finished, etcd
// cannot start on it.
func (w *world) makeSeed(v *vm, epoch uint64) bool {
	if v.etcd != nil {
		return true
	}
	if v.disk.dir == nil {
		token := v.disk.agent.Token
		d := &dir{cid: w.clusterOf(token), id: record.MemberID(v.place+1)<<40 | record.MemberID(epoch)<<32, term: 1}
		d.log = []logEntry{{term: 1, kind: addVoter, id: d.id, place: v.place}}
		d.commit, d.conf, d.corrupt = 1, conf{}.apply(d.log[0]), true
		v.disk.dir = d
	}
	return true
}

// finish ends the making of a directory, which the power can be cut in: etcd runs.
func (w *world) finish(v *vm) bool {
	if v.etcd != nil {
		return true
	}
	if v.disk.dir == nil {
		return false
	}
	v.disk.dir.corrupt = false
	w.launch(v)
	return true
}

// form goes from a directory with the token to `formed`, read back, and only then to `started`.
func (w *world) form(v *vm, epoch uint64) []func() bool {
	return []func() bool{
		func() bool { return v.etcd != nil || w.start(v) },
		func() bool { return v.etcd != nil && (w.leaderOf(v) != nil || w.elect(v)) },
		func() bool {
			if v.etcd == nil {
				return false
			}
			l := w.leaderOf(v) // others may have joined by now, and been given the leadership
			if l == nil {
				return false
			}
			w.commitAll(l)
			if !w.linearizable(l) {
				return false
			}
			v.disk.dir.marker = true
			return true
		},
		w.write(v, func() bool { return v.etcd != nil && w.confirm(v, v.disk.agent.Incarnation, epoch, v.etcd.id) }),
		w.write(v, func() bool {
			if v.etcd == nil ||
				!w.outcome(epoch, record.Outcome{Formed: &record.Formed{ClusterID: v.etcd.cid, MemberID: v.etcd.id}}) {
				return false
			}
			w.checkRestored(w.epoch(epoch), v.etcd.dir)
			return true
		}),
		func() bool {
			if v.etcd == nil {
				return false
			}
			v.disk.agent.Phase, v.disk.agent.MemberID = table.PhaseStarted, v.etcd.id
			return true
		},
	}
}

// setAgent replaces agent.json, which fails on a disk that another host has.
func (v *vm) setAgent(change func(a *table.AgentFile)) bool {
	if v.fenced {
		return false
	}
	change(&v.disk.agent)
	v.disk.agentErr = nil
	return true
}

// start goes on with the directory as it is. One whose database is corrupt does not come up.
func (w *world) start(v *vm) bool {
	if v.etcd != nil || v.disk.dir == nil || v.disk.dir.corrupt || v.fenced {
		return v.etcd != nil
	}
	if v.disk.dir.page { // etcd opens it, and ends
		w.countStart(v)
		return false
	}
	w.launch(v)
	return true
}

// startJoined makes the directory of the member that was added: the id must never have started (S2).
func (w *world) startJoined(v *vm, id record.MemberID) bool {
	formed := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
	if formed == nil || v.etcd != nil {
		return false
	}
	v.disk.dir = &dir{cid: formed.Outcome.Formed.ClusterID, id: id, corrupt: true}
	return true
}

// request asks any member that answers through quorum for a change. Only a clear yes lets the act go on.
func (w *world) request(v *vm, e logEntry) bool {
	formed := table.HistoryOf(table.Facts{Now: w.now, Record: w.view}).Formed
	for _, u := range w.vms {
		if formed == nil || u.etcd == nil || u.etcd.cid != formed.Outcome.Formed.ClusterID {
			continue
		}
		if l := w.leaderOf(u); w.reach(v, u) && l != nil && slices.Contains(u.etcd.conf.voters, u.etcd.id) &&
			w.linearizable(l) {
			return w.propose(u, e) == done
		}
	}
	return false
}

func (w *world) writeStopped(v *vm, f table.Facts, p table.Plan) []func() bool {
	d := f.Directory
	s := record.Stopped{Place: places[v.place], Incarnation: p.Incarnation, InstanceID: v.id, BootID: w.me(v).BootID,
		MemberID: p.MemberID, Time: w.now}
	if p.WithLog {
		s.Term, s.LastIndex, s.CommitIndex, s.Voters, s.Learners, s.Changes = d.LastTerm, d.LastIndex, d.Commit,
			d.Voters, d.Learners, d.Changes
	}
	return []func() bool{
		func() bool {
			if v.disk.agentErr == nil && v.disk.agent.Replica == places[v.place] {
				return v.setAgent(func(a *table.AgentFile) { a.End(p, d.Exists) })
			}
			return true
		},
		w.write(v, func() bool {
			e := w.epoch(p.Epoch)
			there := e != nil && slices.ContainsFunc(e.Stopped,
				func(x record.Stopped) bool { return x.Place == s.Place && x.Incarnation == s.Incarnation })
			if e != nil && !there {
				e.Stopped = append(e.Stopped, s)
			}
			return e != nil
		}),
	}
}

// claimToken is the token of an epoch's claim.
func claimToken(f table.Facts, epoch uint64) string {
	if e := f.Record.Epoch(epoch); e != nil && e.Claim != nil {
		return e.Claim.Token
	}
	return ""
}
