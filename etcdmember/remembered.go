package etcdmember

import (
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// remembered is what an agent keeps from one observation to the next, because one observation cannot show it: that a
// mark is not written any more, which members were listed before the record was read, how long nobody has answered,
// what was tried for nothing. All of it can only hold a step back: an agent that has just started has seen none of it,
// and waits. Only the loop uses it.
type remembered struct {
	beats map[table.BeatKey]table.Beat
	// listed is the newest linearizable list, with the names.
	listed map[record.MemberID]string
	// strangerSince is since when somebody answers although nothing is formed.
	strangerSince time.Time
	silences      table.Silences
	superseded    supersededNote
	// failed is the step that failed last, unfit the order to restore that could not be accepted.
	failed table.Failure
	unfit  table.Unfit
}

// noteList remembers the linearizable list for the next observation, whose record is newer than it.
func (r *remembered) noteList(f table.Facts) {
	a, ok := table.QuorumAnswer(f)
	if !ok {
		return
	}
	r.listed = map[record.MemberID]string{}
	for _, e := range a.Members {
		r.listed[e.ID] = e.Name
	}
}

// noteDecision notes for the next decision who answered although nothing is formed, that this replica is superseded,
// and that another step is next than the one that failed.
func (r *remembered) noteDecision(o table.Observation, p table.Plan) {
	r.strangerSince = o.StrangerSince
	if o.Superseded {
		r.superseded.note()
	}
	if !r.failed.Of(p) {
		r.failed = table.Failure{}
	}
}

// noteAccept notes how a try to accept an order to restore ended, which began at begin.
func (r *remembered) noteAccept(f table.Facts, p table.Plan, begin time.Time, err error) {
	r.unfit = table.Unfit{}
	if err == nil {
		return
	}
	r.unfit = table.Unfit{Order: p.OrderNumber, Why: err.Error(), Until: time.Now()}
	if f.Directory.Running && table.AnswersQuorum(f) { // without one a restore is what everybody waits for
		r.unfit.Until = time.Now().Add(min(acceptRest*time.Since(begin), mostAcceptRest))
	}
}
