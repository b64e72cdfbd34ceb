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

// When a row is tested: at a boot, or also while the own member runs (the * of docs/membership.md).
const (
	atBoot      = false
	alsoRunning = true
)

// RowUnread is the row that start-anyway is for.
const RowUnread Row = 2

// rows is the table, first match wins. A rule without a number stands where it takes effect: an id in stopped/ before
// the rows that would start it, `leave` before the rows that would seed or join.
var rows = []row{
	{0, alsoRunning, is(Observation.superseded), doSuperseded},

	{1, alsoRunning, is(Observation.unreadableButStarted), doStartUnread},
	{RowUnread, alsoRunning, inRecord(RUnreadable), doWaitUnread},
	{3, alsoRunning, is(Observation.lostButStarted), doStartLost},
	{4, alsoRunning, inRecord(RLost), doWaitLost},
	{RowEndAhead, alsoRunning, is(Observation.endsAhead), doEndAhead},
	{5, alsoRunning, is(Observation.recordBehindValidDisk), doStartAhead},
	{6, alsoRunning, is(Observation.recordBehind), doKeepAhead},

	{7, atBoot, is(Observation.foreignDisk), doForeign},
	{RowWithdrawing, alsoRunning, is(Observation.withdraws), doSettleWithdrawal},
	{8, alsoRunning, is(Observation.epochEnds), doEnd},
	{9, alsoRunning, is(Observation.restoring), doRestoreClaimed},
	{10, alsoRunning, is(Observation.diskAbandoned), doArchiveAbandoned},
	{11, atBoot, is(Observation.seederGone), doAbandonSeeder},
	{12, alsoRunning, is(Observation.diskOlder), doOlder},
	{13, atBoot, is(Observation.halfMade), doArchiveHalfMade},

	{RowLeft, atBoot, is(Observation.staysOut), doStayOut},
	{14, atBoot, is(Observation.mayClaim), doClaim},
	{15, alsoRunning, is(Observation.unknownCluster), doUnknownCluster},
	{16, atBoot, is(Observation.maySeed), doSeed},
	{17, alsoRunning, is(Observation.seeded), doForm},
	{18, atBoot, is(Observation.seedBroken), doAbandonOwn},
	{19, atBoot, is(Observation.seedInProgress), doWaitSeed},

	{22, alsoRunning, is(Observation.survivorsRestore), doSurvivorsRestore},

	{RowPaused, atBoot, is(Observation.pausedBeforeChange), doPause},
	{23, atBoot, is(Observation.mayJoin), doJoin},
	{24, atBoot, is(Observation.emptyWithoutQuorum), doWaitEmpty},
	{RowStoppedID, alsoRunning, is(Observation.stoppedID), doStoppedID},
	{25, atBoot, is(Observation.listedAndValid), doStartUnderIncarnation},
	{26, atBoot, is(Observation.removedWhileAway), doArchiveRemoved},
	{27, atBoot, is(Observation.saidRemoved), doWaitRemoved},
	{28, atBoot, is(Observation.neededAndValid), doStartUnderIncarnation},
	{29, atBoot, is(Observation.brokenWithQuorum), doReplaceOwn},
	{30, atBoot, is(Observation.brokenWithoutQuorum), doKeepBroken},

	{RowRunning, alsoRunning, is(Observation.running), doKeep},
}

// is makes a row's condition of a predicate that needs no clock.
func is(p func(Observation) bool) func(Observation, time.Time) bool {
	return func(o Observation, _ time.Time) bool { return p(o) }
}

func inRecord(r RecordClass) func(Observation, time.Time) bool {
	return func(o Observation, _ time.Time) bool { return o.Record == r }
}
