package etcdmember

import (
	"context"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
)

// ownSpace defragments this replica's own member while it is a learner and full. The leader, which does it for the
// voters, cannot: etcd refuses it on a learner's client port (v3rpc/interceptor.go), and a full learner raises the
// alarm again with each write.
type ownSpace struct {
	cfg  Config
	task *backgroundTask
	// full is since when it is, while the alarm stands; done is when it was last defragmented since then. Zero: not.
	full, done time.Time
}

func (o *ownSpace) tick(now time.Time, s table.MemberStatus) {
	if t := o.task; t.ended() {
		o.task = nil
		_ = t.take(now) // its finish logs it
	}
	switch {
	case o.task.runs():
	case !s.Learner || s.Leader == 0 || !leader.IsFull(s):
		o.full, o.done = time.Time{}, time.Time{}
	case o.full.IsZero():
		o.full = now
	case leader.DefragmentsItself(now, s.Database, o.full, o.done):
		o.begin(s.Database)
	}
}

func (o *ownSpace) begin(d table.Database) {
	o.task = startTask("defragment this learner", func(ctx context.Context) error {
		return o.cfg.at(acts.StepDefragmentOwn, func() error { return member.Defragment(ctx, o.cfg.statusSocket()) })
	}, func(now time.Time, err error) {
		o.done = now // also where it failed: another try has time
		if err != nil {
			o.cfg.Log.Warn("defragment this learner", "err", err.Error())
			return
		}
		o.cfg.Log.Info("defragmented this learner", "bytes", d.Bytes, "used", d.InUse)
	})
}

// forget ends the task that runs, if there is one, and forgets what was seen.
func (o *ownSpace) forget() {
	o.task.drop()
	o.task, o.full, o.done = nil, time.Time{}, time.Time{}
}
