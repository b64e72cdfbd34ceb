package table

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// PurgeFacts are what the purge of archives is decided on.
type PurgeFacts struct {
	Now time.Time
	// Archives are those of this replica's data disk, in any order.
	Archives []Archive
	// Observed is what the membership last observed of this replica, ObservedAt when it was; Member is what the member
	// says of itself now.
	Observed   Observation
	ObservedAt time.Time
	Member     MemberStatus
	Record     record.View
	Snapshots  []record.Snapshot
}

// Purge is one archive that may go, and why.
type Purge struct {
	Archive Archive
	Reason  string
}

// ErrKept begins what is said of archives that stay.
var ErrKept = errors.New("no archive is purged")

// DecidePurge chooses the oldest archive that may be deleted: this replica is a voter again, and a verified snapshot is
// a day younger than its incarnation. The last one always stays. It is pure. An error says why none may go, where there
// is more than the last.
func DecidePurge(f PurgeFacts) (*Purge, error) {
	due := f.Due()
	if len(due) == 0 {
		return nil, nil
	}
	why := cmp.Or(f.notVoter(), f.unsettled())
	if why != "" {
		return nil, fmt.Errorf("%w: %s", ErrKept, why)
	}
	own, _ := HistoryOf(Facts{Record: f.Record}).IncarnationOf(f.Member.MemberID)
	s, saved := f.savedSince(own)
	if !saved {
		return nil, fmt.Errorf("%w: no verified snapshot is a day younger than this replica's incarnation", ErrKept)
	}
	for _, a := range due {
		switch {
		case a.ReadErr != nil:
			why = fmt.Sprintf("%s cannot be read: %v", a.Name, a.ReadErr)
		case f.listed(a.MemberID):
			why = a.Name + " is of a member that is in the list"
		case a.Time.After(own.Time):
			why = a.Name + " was put away after this replica's incarnation was taken: it came from elsewhere"
		default:
			return &Purge{a, "snapshot " + s.Name + " is a day younger than this replica's incarnation"}, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrKept, why)
}

// Due are the archives but for those that always stay, oldest first: the newest, and, should that be empty, the newest
// that holds anything. A join that fails for lack of room leaves an empty one each time.
func (f PurgeFacts) Due() (out []Archive) {
	all := slices.SortedFunc(slices.Values(f.Archives), func(a, b Archive) int { return a.Time.Compare(b.Time) })
	last := len(all) - 1
	holds := last
	for holds > 0 && all[holds].empty() {
		holds--
	}
	for n, a := range all {
		if n != last && n != holds {
			out = append(out, a)
		}
	}
	return out
}

// notVoter is why this replica is not a voter again that serves with a quorum; empty: it is. While members differ
// nobody knows whose data is right, and it may be an archive's.
func (f PurgeFacts) notVoter() string {
	s, o := f.Member, f.Observed
	self := slices.IndexFunc(s.Members, func(m Member) bool { return m.ID == s.MemberID })
	switch {
	case f.Now.Sub(f.ObservedAt) > observationAge || f.ObservedAt.After(f.Now):
		return "the last observation of the membership is too long ago"
	case Decide(f.ObservedAt, o).Row != RowRunning || o.Record != Rf || o.Remote != Quorum || o.Phase != PhaseStarted:
		return "this replica does not run as a member with a quorum"
	case s.MemberID == 0 || s.Removed || !s.Ready || s.Leader == 0:
		return "this replica's member does not serve"
	case s.Learner || self < 0 || s.Members[self].Learner:
		return "this replica is not a voter"
	case slices.ContainsFunc(s.Alarms, func(a Alarm) bool { return a.Kind == AlarmCorrupt }):
		return "members' data differ"
	}
	return ""
}

// unsettled is why history may still turn: an order to restore ends the epoch that runs, which may name an archive or
// need one, or a person said `pause`; empty: this replica is of an open epoch that goes on. An order that a newer one
// has superseded counts too, because it may have been accepted; one of an epoch before may never be said to be done.
func (f PurgeFacts) unsettled() string {
	epoch := f.Record.Open()
	orders := OrdersOf(f.Record.Orders, record.NumberOf(epoch), f.Now)
	restores := slices.ContainsFunc(orders.All, func(o record.Order) bool {
		return o.Restore != nil && o.Done == nil &&
			o.Restore.Ends >= record.NumberOf(epoch)
	})
	switch {
	case epoch == nil || epoch.Formed().ClusterID != f.Member.ClusterID ||
		epoch.Number != f.Observed.Names.DiskEpochNumber:
		return "this replica's member is not of the newest epoch, or that is not formed or has ended"
	case restores:
		return "a restore is in force"
	case orders.Paused:
		return "changes are paused by order"
	}
	return ""
}

// listed: the archive's member is one of the cluster. A disk that came here from another replica may be the only one
// that its member has.
func (f PurgeFacts) listed(id record.MemberID) bool {
	return id != 0 && slices.ContainsFunc(f.Member.Members, func(m Member) bool { return m.ID == id })
}

// savedSince finds a snapshot of the epoch that holds all that was acknowledged and stands in an archive of this disk.
// No directory that was put away has run since this replica's incarnation was written. A saving that begins later has
// it all, because the saver proves by a linearizable read that its member is up to date. Both times are the store's, so
// no VM's clock makes an archive old. The saver's time can only hold archives back: in a bucket that was copied the
// store calls old snapshots new.
func (f PurgeFacts) savedSince(own record.Incarnation) (record.Snapshot, bool) {
	for _, s := range slices.Backward(f.Snapshots) {
		if !own.Written.IsZero() && s.Epoch == own.Epoch && s.Written.Sub(own.Written) > ArchiveAge &&
			s.Time.Sub(own.Written) > ArchiveAge {
			return s, true
		}
	}
	return record.Snapshot{}, false
}
