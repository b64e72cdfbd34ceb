package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// alarmWork is what the leader loop does, and has found out, for alarms. All but the revisions is of one leadership:
// these are the history's, whoever leads.
type alarmWork struct {
	cfg       Config
	own       *ownMember
	asks      *asker
	revisions revisions

	task         *backgroundTask
	compacted    time.Time
	defragmented map[record.MemberID]time.Time
	hashes       memberHashes
}

// forget is for a member that does not lead, or not any more.
func (w *alarmWork) forget() {
	w.task.drop()
	w.task, w.compacted, w.defragmented, w.hashes = nil, time.Time{}, map[record.MemberID]time.Time{}, memberHashes{}
}

// observe finds out what the rows of the alarms want to know: nothing where none stands. revision is the leader's.
func (w *alarmWork) observe(ctx context.Context, now time.Time, revision int64, r *leader.Ring) {
	has := func(k table.AlarmKind) bool {
		return slices.ContainsFunc(r.Alarms, func(a table.Alarm) bool { return a.Kind == k })
	}
	if has(table.AlarmNoSpace) {
		r.CompactedSince = now.Sub(w.compacted) < w.revisions.window/compactShare
		w.findSizes(ctx, r)
	}
	if w.hashes.isAbout(r.Alarms); has(table.AlarmCorrupt) {
		w.hashes.give(now, r)
		if !w.task.runs() && w.hashes.due(now, *r) {
			w.askHashes(r.Members, revision)
		}
	}
}

// findSizes asks each member for its database's size, its use and its quota. One that does not answer has none.
func (w *alarmWork) findSizes(ctx context.Context, r *leader.Ring) {
	var wg sync.WaitGroup
	for i := range r.Members {
		m := &r.Members[i]
		m.DefragmentedAt = w.defragmented[m.ID]
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, sizeTimeout)
			defer cancel()
			w.asks.onMember(m.Member, func(c *clientv3.Client, endpoint string) error {
				st, err := c.Status(ctx, endpoint)
				if err == nil {
					m.DBSize, m.DBInUse, m.Quota = st.DbSize, st.DbSizeInUse, st.DbSizeQuota
				}
				return err
			})
		})
	}
	wg.Wait()
}

// askHashes asks the voters that are heard of for their hash at the leader's revision, which all of them reach: a
// CORRUPT alarm refuses writes.
func (w *alarmWork) askHashes(members []leader.RingMember, revision int64) {
	var mu sync.Mutex
	found := map[record.MemberID]dataHash{}
	about := w.hashes.about
	members = slices.DeleteFunc(slices.Clone(members), func(m leader.RingMember) bool { return !asked(m) })
	w.task = startTask("compare the members' data", func(ctx context.Context) error {
		var wg sync.WaitGroup
		errs := make([]error, len(members))
		for i, m := range members {
			wg.Go(func() {
				errs[i] = w.asks.onMember(m.Member, func(c *clientv3.Client, endpoint string) error {
					resp, err := c.HashKV(ctx, endpoint, revision)
					if err != nil {
						return fmt.Errorf("ask %s for its hash at revision %d: %w", leader.Title(m), revision, err)
					}
					mu.Lock()
					defer mu.Unlock()
					found[m.ID] = dataHash{resp.Hash, revision, resp.CompactRevision}
					return nil
				})
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}, func(now time.Time, _ error) {
		if slices.Equal(about, w.hashes.about) {
			w.hashes.reported, w.hashes.at = found, now // also where one did not answer: the others count
		}
		for _, m := range members {
			h := found[m.ID]
			w.cfg.Log.Info("hash of a member's data", "member", leader.Title(m), "id", m.ID.String(), "hash", h.value,
				"revision", h.revision, "compacted", h.compacted)
		}
	})
}

// finishTask takes the result of a task that has ended, and returns how it failed, and at what.
func (w *alarmWork) finishTask(now time.Time) (step string, err error) {
	t := w.task
	if !t.ended() {
		return "", nil
	}
	w.task = nil
	return t.step, t.take(now)
}

// disarm takes one alarm of one member back, and no other, or the one of id 0, which is about a difference: etcd takes
// "no member, no kind" for all of them.
func (w *alarmWork) disarm(ctx context.Context, c *clientv3.Client, a table.Alarm) error {
	kind, ok := etcdserverpb.AlarmType_value[string(a.Kind)]
	if !ok || kind == 0 || a.MemberID == 0 && a.Kind != table.AlarmCorrupt {
		return fmt.Errorf("disarm %q of member %s: only a known alarm of one member is disarmed", a.Kind, a.MemberID)
	}
	return w.cfg.at(acts.StepDisarm, func() error {
		_, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: uint64(a.MemberID),
			Alarm: etcdserverpb.AlarmType(kind)})
		return err
	})
}

// compact gives up the history that nobody needs any more, and waits until its pages are free.
func (w *alarmWork) compact() error {
	revision := w.revisions.old()
	if revision == 0 {
		return errors.New("how far the history has come is not known yet")
	}
	w.task = startTask("compact", func(ctx context.Context) error {
		c, err := w.own.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		return w.cfg.at(acts.StepCompact, func() error {
			_, err := c.Compact(ctx, revision, clientv3.WithCompactPhysical())
			if errors.Is(err, rpctypes.ErrCompacted) {
				return nil // the apiserver was there first
			}
			return err
		})
	}, func(now time.Time, err error) {
		w.compacted = now
		if err == nil {
			w.cfg.Log.Info("compacted the history", "revision", revision)
		}
	})
	return nil
}

// defragment lets one member give its free pages back. It serves nothing meanwhile, so it is done one member at a time.
func (w *alarmWork) defragment(m leader.RingMember) {
	w.task = startTask("defragment "+leader.Title(m), func(ctx context.Context) error {
		return w.asks.onMember(m.Member, func(c *clientv3.Client, endpoint string) error {
			return w.cfg.at(acts.StepDefragment, func() error {
				_, err := c.Defragment(ctx, endpoint)
				return err
			})
		})
	}, func(now time.Time, err error) {
		w.defragmented[m.ID] = now // also where it failed: the others come first
		if err == nil {
			w.cfg.Log.Info("defragmented a member", "member", leader.Title(m), "bytes", m.DBSize, "used", m.DBInUse)
		}
	})
}
