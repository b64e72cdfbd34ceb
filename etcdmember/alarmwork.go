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
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

const (
	// errandTimeout bounds a compaction, a defragmentation, or the hashes of all members: 8 GB take half a minute on a
	// slow disk.
	errandTimeout = 5 * time.Minute
	// compactShare is the part of the historyWindow for which one compaction counts. As time passes more of the history
	// becomes old.
	compactShare = 5
	// hashCounts is how long the members' hashes count.
	hashCounts = time.Minute
	// hashAgain is after how long they are asked again where one of those that are heard of has not told a hash that
	// can be compared.
	hashAgain = 10 * time.Second
	// sizeTimeout bounds the question for one member's size.
	sizeTimeout = time.Second
)

// alarmWork is what is done, and was found out, for alarms in this leadership.
type alarmWork struct {
	errand       *errand
	compacted    time.Time
	defragmented map[record.MemberID]time.Time
	hashes       map[record.MemberID]dataHash
	hashed       time.Time
	// about are the members that have an alarm CORRUPT. When these change, what was told before is no answer any more:
	// the data of a member whose alarm is new may have changed since it told its hash.
	about []record.MemberID
}

// dataHash is a member's HashKV.
type dataHash struct {
	value               uint32
	revision, compacted int64
}

func (w *alarmWork) forget() {
	w.errand.drop()
	*w = alarmWork{defragmented: map[record.MemberID]time.Time{}}
}

// lookAtAlarms finds out what the rows of the alarms want to know: nothing where none stands.
func (b *beside) lookAtAlarms(ctx context.Context, now time.Time, s table.MemberStatus, r *table.Ring) {
	has := func(k table.AlarmKind) bool {
		return slices.ContainsFunc(r.Alarms, func(a table.Alarm) bool { return a.Kind == k })
	}
	if has(table.AlarmNoSpace) {
		r.CompactedSince = now.Sub(b.alarms.compacted) < b.m.history/compactShare
		b.findSizes(ctx, r)
	}
	if b.alarms.isAbout(r.Alarms); has(table.AlarmCorrupt) {
		b.findHashes(now, s.Revision, r)
	}
}

// isAbout notes whose alarms stand, and forgets the hashes that were told for others.
func (w *alarmWork) isAbout(alarms []table.Alarm) {
	var about []record.MemberID
	for _, a := range alarms {
		if a.Kind == table.AlarmCorrupt {
			about = append(about, a.MemberID)
		}
	}
	slices.Sort(about)
	if !slices.Equal(about, w.about) {
		w.about, w.hashes, w.hashed = about, nil, time.Time{}
	}
}

// findSizes asks each member for its database's size, its use and its quota. One that does not answer has none.
func (b *beside) findSizes(ctx context.Context, r *table.Ring) {
	var wg sync.WaitGroup
	for i := range r.Members {
		m := &r.Members[i]
		m.DefragmentedAt = b.alarms.defragmented[m.ID]
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, sizeTimeout)
			defer cancel()
			b.m.asks.onMember(m.Member, func(c *clientv3.Client, endpoint string) error {
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

// findHashes gives each voter the hash that it told last, and asks for all of them again where that is due.
func (b *beside) findHashes(now time.Time, revision int64, r *table.Ring) {
	w := &b.alarms
	w.giveHashes(now, r)
	if !w.errand.runs() && w.hashesDue(now, *r) {
		b.askHashes(r.Members, revision)
	}
}

// giveHashes gives each voter the hash that it told last, where that still counts and can be compared with the
// leader's.
func (w *alarmWork) giveHashes(now time.Time, r *table.Ring) {
	if now.Sub(w.hashed) >= hashCounts {
		return
	}
	leader := w.hashes[r.Leader]
	for i := range r.Members {
		h := w.hashes[r.Members[i].ID]
		if h.revision == leader.revision && h.compacted == leader.compacted {
			r.Members[i].Hash, r.Members[i].HashRevision = h.value, h.revision
		}
	}
}

// hashesDue: what was told counts no longer, or lacks a voter that is heard of now: it was restarting when it was
// asked, or had not compacted as far as the leader.
func (w *alarmWork) hashesDue(now time.Time, r table.Ring) bool {
	lacks := slices.ContainsFunc(r.Members, func(m table.RingMember) bool { return asked(m) && m.HashRevision == 0 })
	since := now.Sub(w.hashed)
	return since >= hashCounts || lacks && since >= hashAgain
}

// asked: a member is one of those whose hash is asked for. A learner refuses the question, and a call to one that is
// out of reach waits for it to come back, to the end of the errand.
func asked(m table.RingMember) bool { return !m.Learner && m.RecentActive && m.StreamsActive }

// askHashes asks the voters that are heard of for their hash at the leader's revision, which all of them reach: a
// CORRUPT alarm refuses writes.
func (b *beside) askHashes(members []table.RingMember, revision int64) {
	var mu sync.Mutex
	found := map[record.MemberID]dataHash{}
	about := b.alarms.about
	members = slices.DeleteFunc(slices.Clone(members), func(m table.RingMember) bool { return !asked(m) })
	b.alarms.errand = startErrand("compare the members' data", func(ctx context.Context) error {
		var wg sync.WaitGroup
		errs := make([]error, len(members))
		for i, m := range members {
			wg.Go(func() {
				errs[i] = b.m.asks.onMember(m.Member, func(c *clientv3.Client, endpoint string) error {
					resp, err := c.HashKV(ctx, endpoint, revision)
					if err != nil {
						return fmt.Errorf("ask %s for its hash at revision %d: %w", table.Title(m), revision, err)
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
		if slices.Equal(about, b.alarms.about) {
			b.alarms.hashes, b.alarms.hashed = found, now // also where one did not answer: the others count
		}
		for _, m := range members {
			h := found[m.ID]
			b.m.cfg.Log.Info("hash of a member's data", "member", table.Title(m), "id", m.ID.String(), "hash", h.value,
				"revision", h.revision, "compacted", h.compacted)
		}
	})
}

// finishErrand takes the result of an errand that has ended.
func (b *beside) finishErrand(ctx context.Context, now time.Time) {
	e := b.alarms.errand
	if !e.ended() {
		return
	}
	b.alarms.errand = nil
	e.cancel()
	if e.err != nil {
		b.fails(ctx, e.step, e.err)
	}
	e.finish(now, e.err)
}

// disarm takes one alarm of one member back, and no other, or the one of id 0, which is about a difference: etcd takes
// "no member, no kind" for all of them.
func (b *beside) disarm(ctx context.Context, c *clientv3.Client, a table.Alarm) error {
	kind, ok := etcdserverpb.AlarmType_value[string(a.Kind)]
	if !ok || kind == 0 || a.MemberID == 0 && a.Kind != table.AlarmCorrupt {
		return fmt.Errorf("disarm %q of member %s: only a known alarm of one member is disarmed", a.Kind, a.MemberID)
	}
	return b.m.at(acts.StepDisarm, func() error {
		_, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: uint64(a.MemberID),
			Alarm: etcdserverpb.AlarmType(kind)})
		return err
	})
}

// compact gives up the history that nobody needs any more, and waits until its pages are free.
func (b *beside) compact() error {
	revision := b.revisions.old()
	if revision == 0 {
		return errors.New("how far the history has come is not known yet")
	}
	b.alarms.errand = startErrand("compact", func(ctx context.Context) error {
		c, err := member.Dial(b.m.dnsName(), b.m.local, b.m.cfg.TLS())
		if err != nil {
			return err
		}
		defer c.Close()
		return b.m.at(acts.StepCompact, func() error {
			_, err := c.Compact(ctx, revision, clientv3.WithCompactPhysical())
			if errors.Is(err, rpctypes.ErrCompacted) {
				return nil // the apiserver was there first
			}
			return err
		})
	}, func(now time.Time, err error) {
		b.alarms.compacted = now
		if err == nil {
			b.m.cfg.Log.Info("compacted the history", "revision", revision)
		}
	})
	return nil
}

// defragment lets one member give its free pages back. It serves nothing meanwhile, so it is done one member at a time.
func (b *beside) defragment(id record.MemberID) error {
	n := slices.IndexFunc(b.previous.Members, func(m table.RingMember) bool { return m.ID == id })
	if n < 0 {
		return nil // removed since
	}
	m := b.previous.Members[n]
	b.alarms.errand = startErrand("defragment "+table.Title(m), func(ctx context.Context) error {
		return b.m.asks.onMember(m.Member, func(c *clientv3.Client, endpoint string) error {
			return b.m.at(acts.StepDefragment, func() error {
				_, err := c.Defragment(ctx, endpoint)
				return err
			})
		})
	}, func(now time.Time, err error) {
		b.alarms.defragmented[id] = now // also where it failed: the others come first
		if err == nil {
			b.m.cfg.Log.Info("defragmented a member", "member", table.Title(m), "bytes", m.DBSize, "used", m.DBInUse)
		}
	})
	return nil
}
