package etcdmember

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/record"
)

const (
	// archiveAge is how old an archive is before it is purged while there is room.
	archiveAge = 24 * time.Hour
	// blindAge is how much younger than an archive a snapshot must be where nothing but clocks tells which is newer.
	// Replicas whose clocks are that far apart do not speak with each other, because their certificates are not valid
	// for one another.
	blindAge = 24 * time.Hour
	// shortShare is the part of the data disk that is to stay free: a tenth.
	shortShare = 10
)

// PurgeFacts are what the purge of archives is decided on.
type PurgeFacts struct {
	Now time.Time
	// Archives are those of this replica's data disk, in any order.
	Archives []Archive
	Room     Room
	// Look is what the membership's last look at this replica found, LookAt when it was; Member is what the member says
	// of itself now.
	Look      Observation
	LookAt    time.Time
	Keeps     bool // the look decided that the member runs as it is, and by no row that is a wait
	Member    MemberStatus
	Record    record.View
	Snapshots []record.Snapshot
}

// Room is how full the data disk is; bytes. Zero: not known.
type Room struct {
	Free, Total int64
	// Database is the size of the member's database.
	Database int64
}

// short says why there is too little room, and is empty where there is enough: the next replacement of this member
// archives the database, copies it anew, and then a snapshot of it has to be verified here before anything can be
// purged again. A tenth of the disk is a bound of its own, since a database grows.
func (r Room) short() string {
	need := 2*r.Database + spare
	switch {
	case r.Total == 0:
		return ""
	case r.Database > 0 && r.Free < need:
		return fmt.Sprintf("space is short: %d MiB are free, and a replacement and its first snapshot need %d MiB",
			r.Free>>20, need>>20)
	case r.Free < r.Total/shortShare:
		return fmt.Sprintf("space is short: %d of %d MiB are free", r.Free>>20, r.Total>>20)
	}
	return ""
}

// Purge is one archive that may go, and why.
type Purge struct {
	Archive Archive
	Reason  string
}

// errKept begins what is said of archives that stay.
var errKept = errors.New("no archive is purged")

// DecidePurge chooses the oldest archive that may be deleted: this replica is a voter again, a verified snapshot is
// newer, and the archive is older than a day or space is short. The last one always stays. It is pure. An error says
// why none may go, where one would else be due.
func DecidePurge(f PurgeFacts) (*Purge, error) {
	due := f.due()
	if len(due) == 0 {
		return nil, nil
	}
	if why := f.notVoter(); why != "" {
		return nil, fmt.Errorf("%w: %s", errKept, why)
	}
	epoch, why := f.unsettled()
	if why != "" {
		return nil, fmt.Errorf("%w: %s", errKept, why)
	}
	for _, p := range due {
		if p.Archive.ReadErr != nil {
			why = fmt.Sprintf("%s cannot be looked at: %v", p.Archive.Name, p.Archive.ReadErr)
		} else if f.listed(p.Archive.MemberID) {
			why = p.Archive.Name + " is of a member that is in the list"
		} else if s, ok := f.newerSnapshot(p.Archive, epoch.Number); ok {
			p.Reason += ", and snapshot " + s.Name + " is newer"
			return &p, nil
		} else {
			why = "no verified snapshot is surely newer than " + p.Archive.Name
		}
	}
	return nil, fmt.Errorf("%w: %s", errKept, why)
}

// due are the archives whose time has come, oldest first, but for those that always stay: the newest, and, should that
// be empty, the newest that holds anything. A join that fails for lack of room leaves an empty one each time.
func (f PurgeFacts) due() (out []Purge) {
	all := slices.SortedFunc(slices.Values(f.Archives), func(a, b Archive) int { return a.Time.Compare(b.Time) })
	last := len(all) - 1
	holds := last
	for holds > 0 && all[holds].empty() {
		holds--
	}
	short := f.Room.short()
	for n, a := range all {
		age := f.Now.Sub(a.Time)
		switch {
		case n == last, n == holds:
		case age > archiveAge:
			out = append(out, Purge{a, fmt.Sprintf("it is %s old", age.Round(time.Minute))})
		case short != "":
			out = append(out, Purge{a, short})
		}
	}
	return out
}

// notVoter is why this replica is not a voter again that serves beside a quorum; empty: it is. While members differ
// nobody knows whose data is right, and it may be an archive's.
func (f PurgeFacts) notVoter() string {
	s, o := f.Member, f.Look
	self := slices.IndexFunc(s.Members, func(m Member) bool { return m.ID == s.MemberID })
	switch {
	case f.Now.Sub(f.LookAt) > time.Minute || f.LookAt.After(f.Now):
		return "the last look at the membership is too long ago"
	case !f.Keeps || o.Fault != "" || o.Record != Rf || o.Remote != Quorum || o.Phase != PhaseStarted:
		return "this replica does not run as a member beside a quorum"
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
// need one, or a person said `pause`. Else it is that epoch. An order that a newer one has superseded counts too,
// because it may have been accepted; one of an epoch before may never be said to be done.
func (f PurgeFacts) unsettled() (epoch *record.Epoch, why string) {
	epoch = f.Record.Open()
	orders := ordersOf(f.Record.Orders, number(epoch), f.Now)
	restores := slices.ContainsFunc(orders.all, func(o record.Order) bool {
		return o.Restore != nil && o.Done == nil &&
			o.Restore.Ends >= number(epoch)
	})
	switch {
	case epoch == nil || epoch.Formed().ClusterID != f.Member.ClusterID ||
		epoch.Number != f.Look.Names.DiskEpochNumber:
		return epoch, "this replica's member is not of the newest epoch, or that is not formed or has ended"
	case restores:
		return epoch, "a restore is in force"
	case orders.paused:
		return epoch, "changes are paused by order"
	}
	return epoch, ""
}

// listed: the archive's member is one of the cluster. A disk that came here from another replica may be the only one
// that its member has.
func (f PurgeFacts) listed(id record.MemberID) bool {
	return id != 0 && slices.ContainsFunc(f.Member.Members, func(m Member) bool { return m.ID == id })
}

// newerSnapshot finds a snapshot that is surely newer than an archive. An archive's time is by the clock that this VM
// had then, a snapshot's by its saver's or by the store's, so times alone prove nothing: within one history a snapshot
// must reach as far as the archive's log, in term and index, and one of another history must be of the epoch that runs
// now, which is after the archive's. Times have to agree as well. Of an archive that cannot be read, or of a history
// that the record does not know, there are only times.
func (f PurgeFacts) newerSnapshot(a Archive, running uint64) (record.Snapshot, bool) {
	own := f.Record.OfCluster(a.ClusterID)
	for _, s := range slices.Backward(f.Snapshots) {
		by := takenBy(s).Sub(a.Time)
		ofOwn := own != nil && s.Epoch == own.Number
		switch {
		case s.Epoch != running && !ofOwn, takenBy(s).Sub(f.Now) > clockSkew, by <= 0:
		case a.unread() || own == nil && !a.empty():
			if by > blindAge {
				return s, true
			}
		case !ofOwn, s.Term > a.Term, s.Term == a.Term && s.Index >= a.LastIndex:
			return s, true
		}
	}
	return record.Snapshot{}, false
}

// takenBy is the earlier of a snapshot's two times.
func takenBy(s record.Snapshot) time.Time {
	if !s.Written.IsZero() && s.Written.Before(s.Time) {
		return s.Written
	}
	return s.Time
}
