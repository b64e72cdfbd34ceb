package member

import (
	"context"
	"log/slog"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/quorate/quorate/internal/backoff"
)

// leadAlone makes a member that is the only one of its cluster lead at once. By itself it would wait for an election
// time-out, 0.1 to 1 s of a first boot's 3 s, for a leader that cannot be there. It tells itself what a leader tells
// its successor, MsgTimeoutNow: campaign now. That is safe whatever the membership really is, because who wins is the
// votes' business; that it is asked of a lone member only is for the peace of the others.
func leadAlone(ctx context.Context, e *embed.Etcd, log *slog.Logger) {
	self := uint64(e.Server.MemberID())
	for end := time.Now().Add(alonePatience); time.Now().Before(end); {
		s := memberStatus(e, false)
		if s.Leader != 0 || len(s.Members) > 1 || s.Learner {
			return
		}
		if len(s.Members) == 1 && s.Committed > 0 && s.Applied == s.Committed { // before, it still reads its log
			now := &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &self, To: &self}
			if err := e.Server.Process(ctx, now); err != nil {
				log.Warn("campaign at once", "err", err.Error())
				return
			}
		}
		if backoff.Sleep(ctx, alonePeriod) != nil {
			return
		}
	}
}
