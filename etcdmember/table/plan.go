package table

import (
	"fmt"
	"strconv"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Row is the number of a row of the membership table, 0 to 49, or one of the rules that have only a name.
type Row int

// The rules that have no number.
const (
	// RowHalt: no row covers what was observed.
	RowHalt Row = 100 + iota
	// RowFault: an error before any row; nothing is touched.
	RowFault
	// RowStoppedID: agent.json says `stopped`, and neither an order nor the record shows why.
	RowStoppedID
	// RowLeft: the newest order for this replica is `leave`.
	RowLeft
	// RowPaused: the newest order is `pause`, and the next step would change the membership.
	RowPaused
	// RowRunning: the member runs and no row stops it.
	RowRunning
	// RowQuiet: in the leader loop, nothing needs to be done.
	RowQuiet
	// RowEndAhead: the record was rolled back, and by it the epoch of the running member ends.
	RowEndAhead
	// RowWithdrawing: an accepted order to restore is to be taken back.
	RowWithdrawing
)

var rowNames = map[Row]string{
	RowHalt: "halt", RowFault: "fault", RowStoppedID: "stopped-id", RowLeft: "left", RowPaused: "paused",
	RowRunning: "running", RowQuiet: "quiet", RowEndAhead: "end-ahead", RowWithdrawing: "withdrawing",
}

// String is the row's number, or the rule's name.
func (r Row) String() string {
	if s, ok := rowNames[r]; ok {
		return s
	}
	return strconv.Itoa(int(r))
}

// MarshalText spells the row as String does.
func (r Row) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (r *Row) UnmarshalText(text []byte) error {
	for row, name := range rowNames {
		if name == string(text) {
			*r = row
			return nil
		}
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("parse row: %q is neither a number nor the name of a rule", text)
	}
	*r = Row(n)
	return nil
}

// Act is the one step of a plan.
type Act string

// The acts. None deletes anything. After each of them, and after any error or time-out, the caller observes again.
const (
	// ActKeep leaves the running member alone.
	ActKeep Act = "keep"
	// ActWait touches nothing and observes again soon; a running member goes on.
	ActWait Act = "wait"
	// ActHalt touches nothing: a person is needed. The caller still observes again.
	ActHalt Act = "halt"
	// ActStart starts etcd on the directory: agent.json is `started`, with fsync, before that.
	ActStart Act = "start"
	// ActStop stops etcd, leadership handed over first where there is time, and keeps every byte.
	ActStop Act = "stop"
	// ActClaim creates claim.json of Plan.Epoch with a new random token and Plan.Source.
	ActClaim Act = "claim"
	// ActSeed takes an incarnation, then forms a new cluster of one with the claim's token: agent.json `seeding` first,
	// the marker last, then as ActForm.
	ActSeed Act = "seed"
	// ActForm starts the seeded or restored directory (where it does not run yet) with an incarnation, makes a
	// linearizable read, creates `formed`, reads it back, and only then writes agent.json `started`.
	ActForm Act = "form"
	// ActFormedAgain creates the outcome `formed` of Plan.Epoch that was lost: Plan.ClusterID and Plan.MemberID.
	ActFormedAgain Act = "create formed again"
	// ActAbandon creates the outcome `abandoned` of Plan.Epoch. That it exists already, either way, is not an error.
	ActAbandon Act = "abandon"
	// ActArchive resets agent.json (PhaseArchiving), then renames the directory away.
	ActArchive Act = "archive"
	// ActTakeIncarnation creates <Plan.Incarnation>.json, unless it is there as ours, and writes the number into
	// agent.json.
	ActTakeIncarnation Act = "take incarnation"
	// ActConfirmIncarnation creates <Plan.Incarnation>.started.json with Plan.MemberID.
	ActConfirmIncarnation Act = "confirm incarnation"
	// ActRemoveMember removes Plan.MemberID from etcd's member list.
	ActRemoveMember Act = "remove member"
	// ActMarkAdding writes agent.json `adding`: join step 3.
	ActMarkAdding Act = "mark adding"
	// ActAddLearner adds a learner with this replica's peer URL and writes agent.json `added` with its id: join steps 4
	// and 5.
	ActAddLearner Act = "add learner"
	// ActStartJoined writes agent.json `started` and starts etcd, `existing`, with the list as just read: join step 8.
	ActStartJoined Act = "start joined"
	// ActWriteStopped writes agent.json `stopped`, for the order Plan.OrderNumber, where the directory is of
	// Plan.Epoch, then creates the stopped/ object of Plan.Incarnation. etcd must have exited.
	ActWriteStopped Act = "write stopped"
	// ActOrderRestore writes Plan.Order as an order of the policy.
	ActOrderRestore Act = "order restore"
	// ActAccept checks whether the restore order Plan.OrderNumber can be carried out here, and creates its
	// accepted.json. A member that runs goes on.
	ActAccept Act = "accept the restore"
	// ActSettle creates the verdict of the order Plan.OrderNumber: closing where Plan.Closing says so, else withdrawn.
	// That the other one is there already is no error.
	ActSettle Act = "settle the restore"
	// ActCloseEpoch creates closed.json of Plan.Epoch for the order Plan.OrderNumber.
	ActCloseEpoch Act = "close epoch"
	// ActRestore builds a new directory with the claim's token from Plan.Source, next to the old one; then it archives
	// that, takes an incarnation, writes agent.json `seeding` and puts the new one in place with its marker.
	ActRestore Act = "restore"

	// ActPromote makes the learner Plan.MemberID a voter.
	ActPromote Act = "promote"
	// ActMoveLeader hands leadership to Plan.MemberID.
	ActMoveLeader Act = "move leader"
	// ActDisarm disarms the alarm Plan.Alarm of Plan.MemberID, and no other.
	ActDisarm Act = "disarm"
	// ActCompact compacts the history that the apiserver no longer needs.
	ActCompact Act = "compact"
	// ActDefragment defragments Plan.MemberID.
	ActDefragment Act = "defragment"
	// ActCompleteOrder creates <Plan.OrderNumber>.done.json: what the order wanted has come true.
	ActCompleteOrder Act = "complete order"
)

// Plan is one step, why it is taken, and whom it concerns. Fields that an act does not name are zero.
type Plan struct {
	Row Row
	Act Act
	// PutOff is the act that the row wants, where ActWait puts it off because it was tried a moment ago; else empty.
	PutOff Act
	// Step is the step of a join (1-9) or of a restore (1-6) that this is; 0 outside of them.
	Step int
	// Epoch, Incarnation, MemberID, ClusterID and Source are what the act concerns.
	Epoch       uint64
	Incarnation uint64
	MemberID    record.MemberID
	ClusterID   record.MemberID
	Source      record.Source
	// Archive names the archived directory that is the source of ActRestore; empty: it is the directory itself, or no
	// directory.
	Archive string
	// OrderNumber is the order that the act carries out; Order is the one that ActOrderRestore writes.
	OrderNumber uint64
	Order       *record.RestoreOrder
	// Closing: the verdict of ActSettle is that the order is carried out.
	Closing bool
	Alarm   Alarm
	// WithLog: the stopped/ object carries where the directory's log ends and its configuration. Only a valid
	// directory's may: row 22 takes an object with a log for a survivor.
	WithLog bool
	// Reason is a sentence for the log and for the record (`abandoned`, `stopped/`).
	Reason string
	// Blocked is set where something is waited for, also while the member runs or starts nevertheless.
	Blocked *replica.Wait
}
