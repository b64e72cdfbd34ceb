package etcdmember

import (
	"context"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// What a member has acknowledged is known to the leader to which it did: raft's Progress.Match, the newest entry that
// the member said was on its disk. A directory whose log ends before that has lost what it acknowledged: it is an older
// copy of the disk, put back in its place, or the disk lied. Started, it would be asked to commit what it does not
// have, and etcd panics ("tocommit is out of range").

// findAcknowledged asks a member what this disk's member had acknowledged to it; 0 where it is not the leader. A leader
// that has just answered through quorum is believed in everything. The order of the two questions makes that a proof:
// the own member has not run since before the first one, so a newer leader cannot have cut its log after it, and a
// leader that a quorum confirmed then was the newest there was. One that was slower than the others, or believes to
// lead and does not, is believed in what it knows to be committed: that was never cut from any log.
func (k *asker) findAcknowledged(ctx context.Context, a table.Answer, own record.MemberID) uint64 {
	status, err := k.raft(ctx, a)
	if err != nil {
		k.log.Info("ask what this member acknowledged", "of", a.Place.String(), "err", err.Error())
		return 0
	}
	newest := acknowledged(status, own)
	if a.Reach != table.ReachLinearizable {
		newest = min(newest, status.Commit)
	}
	return newest
}

// acknowledged is the newest entry that a member has acknowledged to a leader with this status; 0: it is no leader's,
// or it has heard nothing of the member.
func acknowledged(s member.RaftStatus, id record.MemberID) uint64 {
	if s.State != "StateLeader" {
		return 0
	}
	return s.Progress[etcdID(id)].Match
}
