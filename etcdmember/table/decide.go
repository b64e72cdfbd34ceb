package table

import "time"

// Decide chooses the one next step of a replica: the first row of the membership table that holds. It is pure and
// total; what no row covers is a halt. The rows stand below as in docs/membership.md, each with its number or name;
// what they ask are the methods of Observation (predicates.go), what they do are the plans of plans.go, a join's in
// decide_join.go and a restore's in decide_restore.go. A row chooses the act. What was tried before may put it off, or
// name another wait (tries.go).
func Decide(now time.Time, o Observation) Plan {
	if o.Fault != "" {
		return Plan{Row: RowFault, Act: ActHalt}.Waiting(WaitFault, o.Fault+".",
			"Nothing was touched. Repair what is named, and the agent goes on by itself.")
	}
	for _, r := range rows {
		if o.Running && !r.running || !r.when(o, now) {
			continue
		}
		p := o.waitForPeers(r.do(o, now))
		p.Row = r.number
		p = o.heed(p, now)
		if p.Blocked != nil {
			p.Blocked.Row = p.Row.String()
		}
		return p
	}
	return Plan{Row: RowHalt, Act: ActHalt}.Waiting(WaitHalt,
		"no row of the membership table covers what was observed: "+o.Cell()+".",
		"Nothing was touched. Run `quorate etcd explain` and report what it says.")
}

// row is one row of the table. running: it is tested while the own member runs too; all other rows are of the boot.
type row struct {
	number  Row
	running bool
	when    func(o Observation, now time.Time) bool
	do      func(o Observation, now time.Time) Plan
}

// rowUnread is the row that start-anyway is for.
const rowUnread Row = 2

// rows is the table, first match wins. A rule without a number stands where it takes effect: an id in stopped/ before
// the rows that would start it, `leave` before the rows that would seed or join.
var rows = []row{
	{0, true, is(Observation.superseded), doSuperseded},

	{1, true, is(Observation.unreadableButStarted), doStartUnread},
	{rowUnread, true, inRecord(RUnreadable), doWaitUnread},
	{3, true, is(Observation.lostButStarted), doStartLost},
	{4, true, inRecord(RLost), doWaitLost},
	{RowEndAhead, true, is(Observation.endsAhead), doEndAhead},
	{5, true, is(Observation.recordBehindValidDisk), doStartAhead},
	{6, true, is(Observation.recordBehind), doKeepAhead},

	{7, false, is(Observation.foreignDisk), doForeign},
	{RowWithdrawing, true, is(Observation.withdraws), doSettleWithdrawal},
	{8, true, is(Observation.epochEnds), doEnd},
	{9, true, is(Observation.restoring), doRestoreClaimed},
	{10, true, is(Observation.diskAbandoned), doArchiveAbandoned},
	{11, false, is(Observation.mayAbandon), doAbandonSeeder},
	{12, true, is(Observation.diskOlder), doOlder},
	{13, false, is(Observation.halfMade), doArchiveHalfMade},

	{RowLeft, false, is(Observation.staysOut), doStayOut},
	{14, false, is(Observation.maySeed), doClaim},
	{15, true, is(Observation.unknownCluster), doUnknownCluster},
	{16, false, is(Observation.claimedEmpty), doSeed},
	{17, true, is(Observation.seeded), doForm},
	{18, false, is(Observation.seedBroken), doAbandonOwn},
	{19, false, is(Observation.seedInProgress), doWaitSeed},

	{22, true, is(Observation.survivorsPolicy), doSurvivors},

	{RowPaused, false, is(Observation.pausedBeforeChange), doPause},
	{23, false, is(Observation.mayJoin), doJoin},
	{24, false, is(Observation.emptyWithoutQuorum), doWaitEmpty},
	{RowStoppedID, true, is(Observation.stoppedID), doStoppedID},
	{25, false, is(Observation.listedAndValid), doStartUnderIncarnation},
	{26, false, is(Observation.removedWhileAway), doArchiveRemoved},
	{27, false, is(Observation.saidRemoved), doWaitRemoved},
	{28, false, is(Observation.neededAndValid), doStartUnderIncarnation},
	{29, false, is(Observation.brokenWithQuorum), doReplaceOwn},
	{30, false, is(Observation.brokenWithoutQuorum), doKeepBroken},

	{RowRunning, true, is(Observation.running), doKeep},
}

// is makes a row's condition of a predicate that needs no clock.
func is(p func(Observation) bool) func(Observation, time.Time) bool {
	return func(o Observation, _ time.Time) bool { return p(o) }
}

func inRecord(r RecordClass) func(Observation, time.Time) bool {
	return func(o Observation, _ time.Time) bool { return o.Record == r }
}
