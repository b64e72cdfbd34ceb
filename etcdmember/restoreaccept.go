package etcdmember

import (
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

// noteAccept notes how a try to accept an order to restore ended, which began at begin.
func (m *Membership) noteAccept(f table.Facts, p table.Plan, begin time.Time, err error) {
	m.tries.Unfit = table.Unfit{}
	if err != nil {
		m.tries.Unfit = table.Unfit{Order: p.OrderNumber, Why: err.Error(), Until: time.Now()}
		if f.Directory.Running && table.AnswersQuorum(f) { // without one a restore is what everybody waits for
			m.tries.Unfit.Until = time.Now().Add(min(acceptRest*time.Since(begin), mostAcceptRest))
		}
	}
}

// Beside a quorum a try that failed rests for acceptRest times as long as it took, and for mostAcceptRest at most. That
// a snapshot is damaged is found out by reading all of it: without a rest the replica would do nothing else, and with
// it the rows beside the leader, which wait for that.
const (
	acceptRest     = 10
	mostAcceptRest = 5 * time.Minute
)
