package etcdmember

import (
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// memberHashes are the hashes that the members reported of their data when they were last asked.
type memberHashes struct {
	reported map[record.MemberID]dataHash
	at       time.Time
	// about are the members that have an alarm CORRUPT. When these change, what was reported before is no answer any
	// more: the data of a member whose alarm is new may have changed since it reported its hash.
	about []record.MemberID
}

// dataHash is a member's HashKV.
type dataHash struct {
	value               uint32
	revision, compacted int64
}

// isAbout notes whose alarms stand, and forgets the hashes that were reported for others.
func (h *memberHashes) isAbout(alarms []table.Alarm) {
	var about []record.MemberID
	for _, a := range alarms {
		if a.Kind == table.AlarmCorrupt {
			about = append(about, a.MemberID)
		}
	}
	slices.Sort(about)
	if !slices.Equal(about, h.about) {
		*h = memberHashes{about: about}
	}
}

// give gives each voter the hash that it reported last, where that still counts and can be compared with the leader's.
func (h *memberHashes) give(now time.Time, r *leader.Ring) {
	if now.Sub(h.at) >= hashCounts {
		return
	}
	leader := h.reported[r.Leader]
	for i := range r.Members {
		one := h.reported[r.Members[i].ID]
		if one.revision == leader.revision && one.compacted == leader.compacted {
			r.Members[i].Hash, r.Members[i].HashRevision = one.value, one.revision
		}
	}
}

// due: what was reported counts no longer, or lacks a voter that is heard of now: it was restarting when it was asked,
// or had not compacted as far as the leader.
func (h *memberHashes) due(now time.Time, r leader.Ring) bool {
	lacks := slices.ContainsFunc(r.Members, func(m leader.RingMember) bool { return asked(m) && m.HashRevision == 0 })
	since := now.Sub(h.at)
	return since >= hashCounts || lacks && since >= hashAgain
}

// asked: a member is one of those whose hash is asked for. A learner refuses the question, and a call to one that is
// out of reach waits for it to come back, to the end of the task.
func asked(m leader.RingMember) bool { return !m.Learner && m.RecentActive && m.StreamsActive }
