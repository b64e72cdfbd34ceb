package acts

import (
	"context"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Record is what acts write to the record. Every create is write-once: it returns what the record holds afterwards,
// which may be another's, and whether that is ours. After an error the object may be there all the same. The
// implementation tries transient faults again.
type Record interface {
	CreateClaim(ctx context.Context, epoch uint64, c record.Claim) (record.Claim, bool, error)
	CreateOutcome(ctx context.Context, epoch uint64, o record.Outcome) (record.Outcome, bool, error)
	CreateStopped(ctx context.Context, epoch uint64, s record.Stopped) (record.Stopped, bool, error)
	CreateIncarnation(ctx context.Context, i record.Incarnation) (record.Incarnation, bool, error)
	ConfirmIncarnation(ctx context.Context, p replica.Place, number uint64, s record.Started) (record.Started, bool,
		error)
	AcceptOrder(ctx context.Context, number uint64, a record.Accepted) (record.Accepted, bool, error)
	SettleOrder(ctx context.Context, number uint64, v record.Verdict) (record.Verdict, bool, error)
	CreateClosed(ctx context.Context, epoch uint64, c record.Closed) (record.Closed, bool, error)
	// CreateOrder takes the next free number.
	CreateOrder(ctx context.Context, o record.Order) (record.Order, error)
	// View is the record as it is now: an order is read once more before it is accepted.
	View(ctx context.Context) (record.View, error)
}

// Disk is what acts do on the data disk, but for agent.json (AgentStore). Each method that writes is one step: durable
// when it returns, and whole or not there after a power cut.
type Disk interface {
	// HasDirectory reports whether etcd has a directory, whatever is in it.
	HasDirectory() bool
	// Archive puts etcd's directory away.
	Archive() error
	// MarkWhole marks etcd's directory as complete.
	MarkWhole(token string) error
	// CheckSource returns why no restore can be made of the source on this disk; nil: one can.
	CheckSource(ctx context.Context, f table.Facts, s record.Source) error
	// MakeRestored builds the directory of the plan's epoch from the plan's source, which is only read. It is built
	// outside etcd's, and what an earlier attempt has left there goes first.
	MakeRestored(ctx context.Context, f table.Facts, p table.Plan, token string) error
	// MarkRestored marks it as whole, as MarkWhole does. PlaceRestored puts it in the place of etcd's directory, which
	// must not be there.
	MarkRestored(token string) error
	PlaceRestored() error
}

// Member is etcd's process on this VM.
type Member interface {
	Running() bool
	// Start returns once the process runs, which may end right after.
	Start(ctx context.Context, s Start) error
	// Served waits for a linearizable read through the own member.
	Served(ctx context.Context) (clusterID, memberID record.MemberID, err error)
	// HandOver gives leadership away, where the member has it, and takes 2 s at most. Stop returns once the process has
	// exited.
	HandOver(ctx context.Context) error
	Stop(ctx context.Context) error
}

// Start says what a member is started as. The zero value goes on with the directory that is there, and so does any
// other where there is one.
type Start struct {
	// New makes a new cluster of one. Token is its epoch's, which a directory that is being seeded has as well.
	New   bool
	Token string
	// MemberID is the id that was added for this disk, Members the list in which it stands: it joins these.
	MemberID record.MemberID
	Members  []table.Member
}

// Cluster changes the list of members through one that answered through quorum. After an error the change may have
// happened.
type Cluster interface {
	// AddLearner adds this replica to the members, as a learner, and returns its id.
	AddLearner(ctx context.Context, via table.Answer) (record.MemberID, error)
	// RemoveMember removes a member. One that is not in the list is removed already.
	RemoveMember(ctx context.Context, via table.Answer, id record.MemberID) error
}
