package table

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// rowCase is one sentence of the membership table.
type rowCase struct {
	name    string
	facts   func() Facts
	row     Row
	act     Act
	blocked string // Blocked.Name; empty: nothing is waited for
}

// from makes a world and changes it.
func from(base func() Facts, change ...func(*Facts)) func() Facts {
	return func() Facts {
		f := base()
		for _, c := range change {
			c(&f)
		}
		return f
	}
}

func unreadable(f *Facts) { f.RecordErr = errors.New("bucket: timeout") }
func reboot(f *Facts)     { f.Me.BootID = "boot2" }
func wiped(f *Facts)      { f.wipe() }
func withQuorum(f *Facts) { f.quorum() }
func corrupted(f *Facts)  { f.Directory.OpenErr = errors.New("wal: crc mismatch") }
func running(f *Facts)    { f.Directory.Running = true; f.quorum() }
func acknowledged(n uint64) func(*Facts) {
	return func(f *Facts) { f.Answers[0].Acknowledged = n }
}

// ended lets etcd have ended by itself so often, each time with these words.
func ended(times int, text string) func(*Facts) {
	return func(f *Facts) { f.Directory.End = MemberEnd{Text: text, Times: times} }
}

func foreign(f *Facts)    { f.Agent.Replica = pb }
func isClosed(f *Facts)   { f.last().Closed = &record.Closed{} }
func emptyClaim(f *Facts) { f.claim(1, "t1", pa, "101", record.Source{}) }
func theirClaim(f *Facts) { f.claim(1, "t1", pb, "102", record.Source{}) }
func directory() record.Source {
	return record.Source{Kind: record.SourceDirectory, MemberID: 0xa1, DiskID: "d1", Order: 1}
}
func orderMe(f *Facts)    { f.restoreOrder(1, pa, directory()) }
func unfit1(f *Facts)     { f.Tries.Unfit.Order = 1 }
func unaccepted(f *Facts) { f.Record.Orders[0].Accepted = nil }
func orderNewest(f *Facts) {
	orderMe(f)
	f.Record.Orders[0].Restore.Newest = true
}

// longerB lets b's stopped/ object reach further than my log.
func longerB(f *Facts) {
	for i := range f.last().Stopped {
		if s := &f.last().Stopped[i]; s.Place == pb {
			s.LastIndex = 120
		}
	}
}

func orderB(f *Facts) {
	f.restoreOrder(1, pb, record.Source{Kind: record.SourceDirectory, MemberID: 0xb1})
}
func meStopped(f *Facts) {
	f.stopped(pa, 1, 0xa1, 100)
	f.Agent.Phase, f.Agent.StoppedFor = PhaseStopped, 1
}
func closing(f *Facts)  { f.Record.Orders[0].Verdict = &record.Verdict{Closing: true} }
func withdraw(f *Facts) { f.order(record.Order{Kind: record.OrderWithdraw, Withdraws: 1}) }
func tookBack(f *Facts) { f.Record.Orders[0].Verdict = &record.Verdict{Withdrawn: true} }
func othersStopped(f *Facts) {
	f.stopped(pb, 1, 0xb1, 90)
	f.stopped(pc, 1, 0xc3, 90)
}
func othersTerminated(f *Facts) {
	f.status("102", "TERMINATED")
	f.status("103", "STOPPED")
}
func unreadArchive(f *Facts) {
	f.Directory.Archives = []Archive{{Name: "x", ReadErr: syscall.EIO}}
}
func claimRestore(f *Facts) { f.claim(2, "t2", pa, "101", directory()) }

// seeding gives me a directory made for my claim of epoch 1.
func seeding(f *Facts) {
	f.incarnation(pa, 1, "101", "d1", 1, 0)
	f.disk(1, "t1", 1, 0, PhaseSeeding)
	f.Directory.MemberID = 0xa1
}

var bootCases = []rowCase{
	{"0: another instance took my place and I had it: stop",
		from(three, running, func(f *Facts) { f.incarnation(pa, 2, "201", "d9", 1, 0) }), 0, ActStop, "superseded"},
	{"0: and once stopped, nothing more", from(three, func(f *Facts) { f.incarnation(pa, 2, "201", "d9", 1, 0) }), 0,
		ActHalt, "superseded"},
	{"0: not by the one before me, where the record was rolled back to its time", from(three, running, succeededBefore),
		5, ActKeep, "record-rolled-back"},
	{"0: the same after a reboot", from(three, succeededBefore), 5, ActStart, "record-rolled-back"},
	{"0: a new VM that never had an incarnation is not superseded", from(three, wiped, withQuorum,
		func(f *Facts) { f.recreate("d9") }), 23, ActTakeIncarnation, ""},

	{"1: the record cannot be read and the agent was restarted: start as it is", from(three, unreadable), 1, ActStart,
		"record-unreadable"},
	{"1: the same while the member runs: keep it", from(three, running, unreadable), 1, ActKeep, "record-unreadable"},
	{"2: the record cannot be read after a reboot: wait", from(three, unreadable, reboot), 2, ActWait,
		"record-unreadable"},
	{"2: the record cannot be read by a new VM on the same disk: wait",
		from(three, unreadable, func(f *Facts) { f.recreate("d1") }), 2, ActWait, "record-unreadable"},
	{"2: an operator's start-anyway starts a started directory", from(three, unreadable, reboot,
		func(f *Facts) { f.StartAnyway = true }), 2, ActStart, "record-unreadable"},
	{"2: start-anyway does not start an empty disk", from(three, unreadable, wiped,
		func(f *Facts) { f.StartAnyway = true }), 2, ActWait, "record-unreadable"},
	{"3: the record lost its claim and the agent was restarted: start as it is",
		from(three, func(f *Facts) { f.Record.Epochs[0].Claim = nil }), 3, ActStart, "record-lost"},
	{"3: only the outcome is lost and I hold the token: create formed again",
		from(three, func(f *Facts) { f.Record.Epochs[0].Outcome = nil }), 3, ActFormedAgain, "record-lost"},
	{"3: the same while the member runs", from(three, running, func(f *Facts) { f.Record.Epochs[0].Outcome = nil }), 3,
		ActFormedAgain, "record-lost"},
	{"4: no inception: wait", from(blank, func(f *Facts) { f.Record.Inception = nil }), 4, ActWait, "record-lost"},
	{"4: the outcome is lost and the seeder was recreated with an empty disk: nobody abandons, nobody seeds",
		from(three, func(f *Facts) {
			f.Record.Epochs[0].Outcome = nil
			f.Record.Replicas = nil
			f.Record.Marks[0xb1] = record.Mark{Epoch: 1}
			f.wipe()
		}), 4, ActWait, "record-lost"},
	{"5: the disk's epoch is above the record's: start as it is, never archive", from(three, reboot, rollBackRecord), 5,
		ActStart, "record-rolled-back"},
	{"5: the disk's incarnation is above the record's", from(three, reboot, func(f *Facts) { f.Agent.Incarnation = 9 }),
		5, ActStart, "record-rolled-back"},
	{"5: the disk's epoch has another token in the record",
		from(three, reboot, func(f *Facts) { f.Agent.Token = "other" }), 5, ActStart, "record-rolled-back"},
	{"5: while the member runs it goes on", from(three, running, rollBackRecord), 5, ActKeep, "record-rolled-back"},
	{"6: the same with a corrupt directory: keep the bytes", from(three, rollBackRecord, corrupted), 6, ActHalt,
		"record-rolled-back"},
	{"6: the same with a directory that was being seeded: it never starts on a record that does not know it",
		from(three, rollBackRecord, func(f *Facts) { f.Agent.Phase = PhaseSeeding }), 6, ActHalt, "record-rolled-back"},
	{"6: an empty directory whose agent.json has seen a later epoch does not seed on a record that was rolled back",
		from(blank, func(f *Facts) { f.Agent = AgentFile{ClusterUID: "uid", NewestEpoch: 1} }), 6, ActHalt,
		"record-rolled-back"},

	{"7: another replica's disk, with a quorum: archive", from(three, foreign, withQuorum), 7, ActArchive, ""},
	{"7: another replica's disk, its epoch closed: archive", from(three, foreign, isClosed), 7, ActArchive, ""},
	{"7: another replica's disk of the open epoch, no quorum: keep it", from(three, foreign), 7, ActWait,
		"foreign-disk"},
	{"7: a corrupt clone of another replica's disk is that replica's", from(three, foreign, corrupted), 7, ActWait,
		"foreign-disk"},
	{"7: another replica's disk of an epoch that is over, whose closed.json is lost: archive",
		from(three, foreign, nextFormed), 7, ActArchive, ""},

	{"8: the epoch is closed while the member runs: stop", from(three, running, isClosed), 8, ActStop, ""},
	{"8: then say that it has stopped", from(three, isClosed), 8, ActWriteStopped, ""},
	{"8: then wait", from(three, isClosed, meStopped), 8, ActWait, "epoch-closed"},
	{"8: a restore order ends my epoch while the member runs: stop", from(three, running, orderB), 8, ActStop, ""},
	{"8: a restore order that the replica it names has not accepted stops nobody",
		from(three, running, orderB, unaccepted), RowRunning, ActKeep, ""},
	{"8: the replica that it names accepts it first, while its member runs", from(three, running, orderMe, unaccepted),
		8, ActAccept, ""},
	{"8: and also where its member is stopped", from(three, orderMe, unaccepted), 8, ActAccept, ""},
	{"8: it does not accept what it does not have", from(three, wiped, orderMe, unaccepted), 8, ActWait, "source-gone"},
	{"8: a member that runs accepts what it does not have: it finds that out", from(three, running, func(f *Facts) {
		f.restoreOrder(1, pa, record.Source{Kind: record.SourceSnapshot, Snapshot: "s"})
		f.Record.Orders[0].Accepted = nil
	}), 8, ActAccept, ""},
	{"8: what it cannot carry out lets a needed member start", from(three, orderMe, unaccepted, unfit1), 28, ActStart,
		""},
	{"8: and a listed one, which is to leave", from(three, orderMe, unaccepted, unfit1, withQuorum, leaveMe), 25,
		ActStart, ""},
	{"8: but none of which a peer says that it was removed", from(three, orderMe, unaccepted, unfit1, func(f *Facts) {
		f.answers(ReachAnswers)
		f.Answers[0].Removed = true
	}), 8, ActAccept, WaitUnfit},
	{"8: nor one that has ended, nothing shows for which order",
		from(three, orderMe, unaccepted, unfit1, stoppedFor(0)), 8, ActAccept, WaitUnfit},
	{"8: what it does not have lets it join", from(three, wiped, orderMe, unaccepted, withQuorum), 23,
		ActTakeIncarnation, ""},
	{"8: but not where it is to leave", from(three, wiped, orderMe, unaccepted, withQuorum, leaveMe), 8, ActWait,
		"source-gone"},
	{"8: nor while paused", from(three, wiped, orderMe, unaccepted, withQuorum, pause), 8, ActWait, "source-gone"},
	{"8: what was being put away is put away before its source is looked for",
		from(three, archiving, orderMe, unaccepted), 8, ActArchive, ""},
	{"8: the order names this replica, and another has claimed for it: wait",
		from(three, orderMe, meStopped, othersStopped, isClosed, func(f *Facts) {
			f.claim(2, "t2", pb, "102", record.Source{Kind: record.SourceDirectory, MemberID: 0xb1, Order: 1})
		}), 8, ActWait, "epoch-closed"},
	{"8: a newer order does not undo that an older one was accepted", from(three, running, orderB, func(f *Facts) {
		f.restoreOrder(1, pc, directory())
		f.Record.Orders[1].Accepted = nil
	}), 8, ActStop, ""},
	{"8: the newer order's replica looks before it closes", from(three, orderB, othersStopped, meStopped,
		func(f *Facts) {
			orderMe(f)
			f.Record.Orders[1].Accepted = nil
		}), 8, ActAccept, ""},
	{"8: an empty disk waits too, when its place is silent",
		from(three, wiped, orderB, func(f *Facts) { f.stopped(pa, 1, 0xa1, 0) }), 8, ActWait, "epoch-closed"},
	{"8: a place between join steps 7 and 8 falls silent first", from(three, wiped, orderB, withQuorum, func(f *Facts) {
		f.incarnation(pa, 2, "101", "d1", 1, 0xa2)
		f.Agent = AgentFile{ClusterUID: "uid", Epoch: 1, Token: "t1", Replica: pa, InstanceID: "101", BootID: "boot1",
			Incarnation: 2, MemberID: 0xa2, Phase: PhaseAdded}
	}), 8, ActWriteStopped, ""},
	{"8: a pending incarnation is silenced as well",
		from(three, wiped, orderB, func(f *Facts) {
			f.incarnation(pa, 2, "101", "d1", 1, 0)
			f.Agent.Incarnation,
				f.Agent.Replica = 2, pa
		}), 8, ActWriteStopped, ""},
	{"8: an order that was withdrawn before it was accepted stops nobody", from(three, running, orderB, unaccepted,
		withdraw), RowRunning, ActKeep, ""},
	{"8: one that was taken back by its verdict stops nobody, also without the withdrawal",
		from(three, running, orderB, tookBack), RowRunning, ActKeep, ""},
	{"8: a withdrawal of an accepted order needs a verdict first, before anybody stops",
		from(three, running, orderB, withdraw), RowWithdrawing, ActSettle, ""},
	{"8: the same where this replica has stopped for it", from(three, meStopped, orderB, withdraw), RowWithdrawing,
		ActSettle, ""},
	{"8: a withdrawal that came too late is none", from(three, running, orderB, withdraw, closing), 8, ActStop, ""},
	{"8: nor is one of an order that has closed the epoch, by an earlier version without a verdict",
		from(three, meStopped, orderB, withdraw, isClosed), 8, ActWait, "epoch-closed"},
	{"8: who stopped for an order that was taken back goes on under the next incarnation",
		from(three, meStopped, orderB, tookBack, func(f *Facts) { f.quorum() }), 25, ActTakeIncarnation, ""},
	{"8: the same without a quorum: all may have stopped, and all go on", from(three, meStopped, orderB, tookBack), 28,
		ActTakeIncarnation, ""},
	{"8: a record that lacks the order for which this replica stopped was rolled back", from(three, meStopped), 6,
		ActHalt, "record-rolled-back"},
	{"8: so was one in which that order was not accepted", from(three, meStopped, orderB, unaccepted), 6, ActHalt,
		"record-rolled-back"},
	{"8: a pending incarnation that has ended is not used again", from(three, wiped, func(f *Facts) {
		f.incarnation(pa, 2, "101", "d1", 1, 0)
		f.Agent = AgentFile{ClusterUID: "uid", Replica: pa, InstanceID: "101", BootID: "boot1", Incarnation: 2,
			NewestEpoch: 1, Phase: PhaseAdding, Epoch: 1, Token: "t1"}
		f.stopped(pa, 2, 0, 0)
		f.quorum(entry(pb, "102", 0xb1), entry(pc, "103", 0xc3))
	}), 23, ActTakeIncarnation, ""},
	{"8: a disk that comes back for an order says where its log ends under an incarnation of its own",
		from(three, orderB, func(f *Facts) { f.recreate("d1") }), 8, ActTakeIncarnation, ""},
	{"8: and then says it", from(three, orderB, func(f *Facts) {
		f.recreate("d1")
		f.incarnation(pa, 2, "201", "d1", 1, 0)
		f.Record.Replicas[pa][1].BootID = "boot2"
		f.Agent.InstanceID, f.Agent.BootID, f.Agent.Incarnation = "201", "boot2", 2
	}), 8, ActWriteStopped, ""},
	{"8: an empty disk of a VM that had a member says that it runs nothing, and nothing of the member",
		from(three, orderB, wiped), 8, ActTakeIncarnation, ""},
	{"8: what an earlier version's successor has spoken for is said under the next",
		from(three, orderB, func(f *Facts) {
			f.stopped(pa, 1, 0, 0)
			f.last().Stopped[0].InstanceID = "201"
		}), 8, ActTakeIncarnation, ""},
	{"8: nothing goes on under what has ended on the disk: the object may still come",
		from(three, orderB, tookBack, func(f *Facts) { f.Agent.Ended = 1 }), 28, ActTakeIncarnation, ""},
	{"8: a member that runs under what has ended stops, and goes on under the next",
		from(three, running, func(f *Facts) { f.stopped(pa, 1, 0xa1, 0) }), RowStoppedID, ActStop, ""},
	{"8: one that a quorum has removed meanwhile is left to its own end",
		from(three, running, removedMe, func(f *Facts) { f.stopped(pa, 1, 0xa1, 0) }), RowRunning, ActKeep, ""},
	{"8: a stopped one that a quorum has removed is put away for that, whatever it had stopped for",
		from(three, stoppedFor(0), removedMe), 26, ActArchive, ""},
	{"8: after a rebuild of the record it is not known for what a replica had stopped",
		from(three, meStopped, func(f *Facts) {
			f.last().Claim.Source.Kind = record.SourceRebuilt
			f.last().Stopped = nil
		}), RowStoppedID, ActWait, "stopped-id"},
	{"8: a disk that cannot carry a new incarnation speaks for the newest of its instance",
		from(three, orderB, corrupted, reboot), 8, ActWriteStopped, ""},
	{"end-ahead: a record that was rolled back ends the epoch of a running member: it stops", from(three, running,
		orderB, func(f *Facts) { f.Agent.Incarnation = 2 }), RowEndAhead, ActStop, "record-rolled-back"},
	{"end-ahead: and says nothing", from(three, orderB, func(f *Facts) { f.Agent.Incarnation = 2 }), RowEndAhead,
		ActHalt, "record-rolled-back"},
	{"end-ahead: an order about another history stops nobody",
		from(three, running, orderB, func(f *Facts) { f.Agent.Token = "t0" }), 5, ActKeep, "record-rolled-back"},
	{"0: this instance runs on another host by now", from(three, running, func(f *Facts) {
		f.incarnation(pa, 2, "101", "d1", 1, 0xa1)
		f.Record.Replicas[pa][1].BootID = "boot2"
	}), 0, ActStop, "superseded"},
	{"0: also after its agent was restarted, with an agent.json that the other boot wrote", from(three, func(f *Facts) {
		f.incarnation(pa, 2, "101", "d1", 1, 0xa1)
		f.Record.Replicas[pa][1].BootID = "boot2"
		f.Agent.BootID, f.Agent.Incarnation = "boot2", 2
	}), 0, ActHalt, "superseded"},
	{"0: a reboot is the newest boot", from(three, func(f *Facts) {
		f.incarnation(pa, 2, "101", "d1", 1, 0xa1)
		f.Record.Replicas[pa][1].BootID = "boot2"
		f.Me.BootID, f.Agent.BootID, f.Agent.Incarnation = "boot2", "boot2", 2
	}), 28, ActStart, ""},
	{"8: an order whose restore is formed stops nobody", from(three, orderB, isClosed, func(f *Facts) {
		f.claim(2, "t2", pb, "102", record.Source{Kind: record.SourceDirectory})
		f.form(0xc2, 0xb2)
	}), 12, ActArchive, ""},
	{"8: the restorer waits for those that could still serve", from(three, orderMe, meStopped), 8, ActWait,
		"restore-waits"},
	{"8: the restorer waits although their record is unreadable to them and their agents restart: they wrote nothing",
		from(three, orderMe, meStopped, func(f *Facts) { f.stopped(pb, 1, 0xb1, 90) }), 8, ActWait, "restore-waits"},
	{"8: another stopped with a longer log: the next order names it", from(three, orderNewest, meStopped, othersStopped,
		longerB), 8, ActOrderRestore, ""},
	{"8: another stopped with as long a log: the named one goes on", from(three, orderNewest, othersStopped, meStopped,
		func(f *Facts) { f.last().Stopped[0].LastIndex = 100 }), 8, ActSettle, ""},
	{"8: the same where its disk's id is not known", from(three, orderNewest, meStopped, othersStopped, longerB,
		func(f *Facts) {
			mine := f.Record.Replicas[pb]
			for i := range mine {
				mine[i].DiskID = ""
				if mine[i].Started != nil {
					mine[i].Started.DiskID = ""
				}
			}
		}), 8, ActOrderRestore, ""},
	{"8: one that stopped with a longer log has gone with its disk since", from(three, orderNewest, meStopped,
		othersStopped, longerB, bGone), 8, ActSettle, ""},
	{"8: a VM that is TERMINATED in two lists, long since, and writes no marks is silent",
		from(three, orderMe, meStopped, othersTerminated), 8, ActSettle, ""},
	{"8: the former VM of a place is not silent by its successor's word: an old VM may still run",
		from(three, orderMe, meStopped, othersStopped, func(f *Facts) {
			f.last().Stopped[1].InstanceID = "202" // b's successor, which took no incarnation
		}), 8, ActWait, "restore-waits"},
	{"8: nor by its successor's incarnation", from(three, orderMe, meStopped, func(f *Facts) {
		f.stopped(pc, 1, 0xc3, 90)
		f.incarnation(pb, 2, "202", "d9", 1, 0)
		f.stopped(pb, 2, 0, 0)
		f.lists("101", "102", "103")
	}), 8, ActWait, "restore-waits"},
	{"8: it is silent once two lists lack it", from(three, orderMe, meStopped, func(f *Facts) {
		f.stopped(pc, 1, 0xc3, 90)
		f.incarnation(pb, 2, "202", "d9", 1, 0)
		f.stopped(pb, 2, 0, 0)
		f.lists("101", "202", "103")
	}), 8, ActSettle, ""},
	{"8: nor is the former VM of my own place", from(three, orderMe, othersStopped, wiped, func(f *Facts) {
		f.recreate("d9")
		f.lists("101", "201", "102", "103")
		f.stopped(pa, 1, 0xa1, 0)
		f.Record.Epochs[0].Stopped[2].InstanceID = "201"
	}), 8, ActWait, "restore-waits"},
	{"8: the source was being put away when the power was cut: put it away, and restore from the archive",
		from(three, orderMe, meStopped, othersStopped, isClosed, func(f *Facts) {
			f.Agent = AgentFile{ClusterUID: "uid", Replica: pa, Phase: PhaseArchiving}
		}), 8, ActArchive, ""},
	{"8: all silent: the record says first that the order is carried out", from(three, orderMe, meStopped,
		othersStopped), 8, ActSettle, ""},
	{"8: then the restorer closes the epoch", from(three, orderMe, meStopped, othersStopped, closing), 8, ActCloseEpoch,
		""},
	{"8: closed: it claims the next epoch", from(three, orderMe, meStopped, othersStopped, isClosed), 8, ActClaim, ""},
	{"8: a directory whose agent.json is lost is the source that the order names", from(three, orderMe, othersStopped,
		closing, func(f *Facts) {
			f.Agent = AgentFile{}
			f.stopped(pa, 1, 0, 0)
		}), 8, ActCloseEpoch, ""},
	{"8: not where it is of another cluster", from(three, orderMe, othersStopped, closing, func(f *Facts) {
		f.Agent, f.Directory.ClusterID = AgentFile{}, 0xc9
		f.stopped(pa, 1, 0, 0)
	}), 8, ActWait, "source-gone"},
	{"8: the source reaches less far than the order demands: nothing is closed", from(three, orderMe, meStopped,
		othersStopped, func(f *Facts) { f.Record.Orders[0].Restore.Term, f.Record.Orders[0].Restore.Commit = 3, 101 }),
		8, ActWait, "source-gone"},
	{"8: the survivor's VM is recreated right after closed.json, with its disk: it goes on", from(three, orderMe,
		meStopped, othersStopped, isClosed, func(f *Facts) { f.recreate("d1") }), 8, ActClaim, ""},
	{"8: the others wait while the restore is claimed", from(three, orderB, meStopped, othersStopped, isClosed,
		func(f *Facts) {
			f.claim(2, "t2", pb, "102", record.Source{Kind: record.SourceDirectory, MemberID: 0xb1, Order: 1})
		}), 8, ActWait, "epoch-closed"},

	{"9: claimed for my directory: restore it", from(three, orderMe, meStopped, othersStopped, isClosed, claimRestore),
		9, ActRestore, ""},
	{"9: the source is gone: abandon", from(three, orderMe, othersStopped, wiped, isClosed, claimRestore,
		func(f *Facts) { f.stopped(pa, 1, 0xa1, 0) }), 9, ActAbandon, ""},
	{"9: it may be in an archive that cannot be looked at: wait", from(three, orderMe, othersStopped, wiped, isClosed,
		claimRestore, unreadArchive, func(f *Facts) { f.stopped(pa, 1, 0xa1, 0) }), 9, ActWait, "source-gone"},
	{"9: the same, and a newer order wants another source: abandon", from(three, orderMe, othersStopped, wiped,
		isClosed, claimRestore, unreadArchive, func(f *Facts) {
			f.stopped(pa, 1, 0xa1, 0)
			f.restoreOrder(1, pa, record.Source{Kind: record.SourceSnapshot, Snapshot: "1/1-x"})
		}), 9, ActAbandon, ""},
	{"8: an archive that cannot be looked at keeps nobody from saying that it has stopped",
		from(three, orderB, isClosed, unreadArchive), 8, ActWriteStopped, ""},
	{"9: an archive of the named member will do", from(three, orderMe, othersStopped, wiped, isClosed, claimRestore,
		func(f *Facts) {
			f.stopped(pa, 1, 0xa1, 0)
			f.Directory.Archives = []Archive{{Name: "x", MemberID: 0xa1, Term: 3, LastIndex: 100}}
		}), 9, ActRestore, ""},
	{"9: the source was being put away when the power was cut: put it away before it is judged",
		from(three, orderMe, meStopped, othersStopped, isClosed, claimRestore, func(f *Facts) {
			f.Agent = AgentFile{ClusterUID: "uid", Replica: pa, Phase: PhaseArchiving}
		}), 9, ActArchive, ""},
	{"9: a half-made restore is put away", from(three, orderMe, isClosed, claimRestore, restored,
		func(f *Facts) { f.Directory.Marker = false }), 9, ActArchive, ""},
	{"9: restored and marked: form", from(three, orderMe, isClosed, claimRestore, restored), 9, ActForm, ""},
	{"9: restored and rebooted: a new incarnation first", from(three, orderMe, isClosed, claimRestore, restored,
		reboot), 9, ActTakeIncarnation, ""},
	{"9: restored and corrupt: abandon", from(three, orderMe, isClosed, claimRestore, restored, corrupted), 9,
		ActAbandon, ""},

	{"10: the disk's epoch was abandoned: archive", from(blank, emptyClaim, seeding, func(f *Facts) { f.abandon() }),
		10, ActArchive, ""},
	{"10: while the seeder runs: stop first", from(blank, emptyClaim, seeding,
		func(f *Facts) { f.abandon(); f.Directory.Running = true }), 10, ActStop, ""},
	{"11: the seeder is gone from two lists and nobody answers: abandon",
		from(blank, theirClaim, func(f *Facts) { f.lists("101", "103") }), 11, ActAbandon, ""},
	{"11: the seeder's VM was recreated, by me: abandon", from(blank, emptyClaim, func(f *Facts) { f.recreate("d9") }),
		11, ActAbandon, ""},
	{"11: the same where no disk is known by its id",
		from(blank, emptyClaim, func(f *Facts) { f.recreate("") }), 11, ActAbandon, ""},
	{"11: not while something answers", from(blank, theirClaim,
		func(f *Facts) { f.lists("101", "103"); f.answers(ReachTCP) }), 19, ActWait, "seed-in-progress"},
	{"11: the restorer's VM was recreated between claim and first write: its successor abandons",
		from(three, orderMe, othersStopped, isClosed, claimRestore, wiped,
			func(f *Facts) { f.stopped(pa, 1, 0xa1, 0); f.recreate("d9") }), 11, ActAbandon, ""},
	// The restorer archives what is in the way, the power is cut between agent.json and the rename, and its VM is made
	// again on that disk: a directory of no epoch, and a claim of the former instance. Everybody would wait for good.
	{"11: also with a directory that was being put away for the claim", from(three, orderMe, othersStopped, isClosed,
		claimRestore, func(f *Facts) {
			f.last().Claim.Source = record.Source{Kind: record.SourceSnapshot, Order: 1}
			f.stopped(pa, 1, 0xa1, 0)
			f.recreate("d1")
			f.Agent = AgentFile{ClusterUID: "uid", Replica: pa, Phase: PhaseArchiving}
		}), 11, ActAbandon, ""},
	{"11: a newer restore order names me: abandon the other's claim", from(three, orderB, meStopped, othersStopped,
		isClosed, func(f *Facts) {
			f.claim(2, "t2", pb, "102", record.Source{Kind: record.SourceDirectory, MemberID: 0xb1, Order: 1})
			orderMe(f)
		}), 11, ActAbandon, ""},
	{"12: a newer epoch is formed: archive", from(three, isClosed, nextFormed), 12, ActArchive, ""},
	{"12: the same while running: stop", from(three, running, isClosed, nextFormed), 12, ActStop, ""},
	{"12: a newer one is claimed: stay stopped",
		from(three, isClosed,
			func(f *Facts) { f.claim(2, "t2", pb, "102", record.Source{Kind: record.SourceSnapshot}) }), 12, ActWait,
		"older-epoch"},
	{"13: half made by a seed: archive", from(blank, emptyClaim, seeding,
		func(f *Facts) { f.Directory.Marker = false }), 13, ActArchive, ""},
	{"13: half archived: archive",
		from(three, withQuorum, func(f *Facts) {
			f.Agent = AgentFile{ClusterUID: "uid", Replica: pa,
				Phase: PhaseArchiving}
		}), 13, ActArchive, ""},

	{"14: nothing was ever formed, empty, nobody answers: claim", blank, 14, ActClaim, ""},
	{"14: after an abandoned epoch: claim the next", from(blank, theirClaim, func(f *Facts) { f.abandon() }), 14,
		ActClaim, ""},
	{"14: not fit to seed: wait", from(blank, func(f *Facts) { f.Preflight = errors.New("port 2380 is in use") }), 14,
		ActWait, "preflight"},
	{"15: somebody answers, first look: look again", from(blank, func(f *Facts) { f.answers(ReachTCP) }), 15, ActWait,
		"unknown-cluster"},
	{"15: somebody still answers 5 s later: halt",
		from(blank, func(f *Facts) { f.answers(ReachTCP); f.StrangerSince = t0.Add(-5 * time.Second) }), 15, ActHalt,
		"unknown-cluster"},
	{"15: no list of instances: nobody seeds", from(blank, func(f *Facts) { f.Compute.Second.Err = errors.New("403") }),
		15, ActWait, "no-instance-list"},
	{"15: an empty list of instances: nobody seeds", from(blank, func(f *Facts) { f.Compute.Second.Instances = nil }),
		15, ActWait, "no-instance-list"},
	{"15: my own claim, and somebody answers: no seed",
		from(blank, emptyClaim, func(f *Facts) { f.answers(ReachAnswers) }), 15, ActWait, "unknown-cluster"},
	{"16: my claim, empty disk: seed", from(blank, emptyClaim), 16, ActSeed, ""},
	{"17: my claim, its directory: form", from(blank, emptyClaim, seeding), 17, ActForm, ""},
	{"17: my place's claim, its disk under a new VM: an incarnation, then form", from(blank, emptyClaim, seeding,
		func(f *Facts) { f.recreate("d1") }), 17, ActTakeIncarnation, ""},
	{"17: the seeder runs and has not written started yet", from(three, func(f *Facts) {
		f.Record.Epochs[0].Claim.Seeder = record.Seeder{Place: pa, InstanceID: "101"}
		f.Agent.Phase, f.Directory.Running = PhaseSeeding, true
	}), 17, ActForm, ""},
	{"18: my place's claim, a copy of its disk under a new VM: abandon", from(blank, emptyClaim, seeding,
		func(f *Facts) { f.recreate("d9") }), 18, ActAbandon, ""},
	{"18: my claim, its directory corrupt: abandon, one token never seeds twice", from(blank, emptyClaim, seeding,
		corrupted), 18, ActAbandon, ""},
	{"19: another's claim: wait", from(blank, theirClaim), 19, ActWait, "seed-in-progress"},
}

func nextFormed(f *Facts) {
	f.claim(2, "t2", pb, "102", record.Source{Kind: record.SourceSnapshot})
	f.form(0xc2, 0xb2)
}

func rollBackRecord(f *Facts) {
	f.Record.Epochs, f.Record.Replicas = nil, nil
}

// succeededBefore: I had taken incarnation 3 in the place of instance 99, and the record went back to when that one was
// the newest.
func succeededBefore(f *Facts) {
	f.Record.Replicas[pa] = nil
	f.incarnation(pa, 2, "99", "d1", 1, 0xa1)
	f.Agent.Incarnation = 3
}

// restored gives me the directory of a restore into epoch 2.
func restored(f *Facts) {
	f.stopped(pa, 1, 0xa1, 100)
	f.incarnation(pa, 2, "101", "d1", 2, 0)
	f.disk(2, "t2", 2, 0, PhaseSeeding)
	f.Directory.MemberID, f.Directory.ClusterID = 0xa2, 0xc2
}

func (c rowCase) run(t *testing.T) {
	f := c.facts()
	o := Classify(f)
	p := Decide(f.Now, o)
	blocked := ""
	if p.Blocked != nil {
		blocked = p.Blocked.Name
	}
	if p.Row != c.row || p.Act != c.act || blocked != c.blocked {
		t.Errorf("row %s, %s, blocked %q; want row %s, %s, %q\n%s\nreason: %s\n%+v", p.Row, p.Act, blocked, c.row,
			c.act, c.blocked, o.Cell(), p.Reason, o)
	}
}

func TestRowsAtBoot(t *testing.T) {
	for _, c := range append(bootCases, memberCases...) {
		t.Run(c.name, c.run)
	}
}

// TestEveryRowHasACase keeps the table and the cases together.
func TestEveryRowHasACase(t *testing.T) {
	seen := map[Row]bool{}
	for _, c := range append(bootCases, memberCases...) {
		seen[c.row] = true
	}
	for _, r := range rows {
		if !seen[r.number] {
			t.Errorf("row %s has no case", r.number)
		}
	}
}

// A boot takes incarnation 2 of epoch 1, its agent is ended before agent.json says so, and then the restore of epoch 2
// takes one: under 2 it would find the one of epoch 1, for ever.
func TestARestoreTakesAnIncarnationOfItsOwnEpoch(t *testing.T) {
	f := from(three, orderMe, meStopped, othersStopped, isClosed, claimRestore, func(f *Facts) {
		f.incarnation(pa, 2, "101", "d1", 1, 0)
		f.stopped(pa, 2, 0, 0)
	})()
	if p := decided(f); p.Act != ActRestore || p.Incarnation != 3 {
		t.Errorf("%+v", p)
	}
}
