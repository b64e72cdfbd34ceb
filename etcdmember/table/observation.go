package table

import (
	"time"

	"github.com/quorate/quorate/internal/record"
)

// LocalClass is what the data disk holds, in the terms of the membership table.
type LocalClass string

// The classes of the disk. docs/membership.md has the order in which they are tested; some are tested twice.
const (
	// L0: no directory.
	L0 LocalClass = "L0"
	// LF: another replica's disk.
	LF LocalClass = "LF"
	// L5: half made by a seed, a restore or a join, or half archived: nothing on it was ever acknowledged, or it was
	// being put away.
	L5 LocalClass = "L5"
	// L2: WAL or database cannot be opened, or the directory is not the one that agent.json describes.
	L2 LocalClass = "L2"
	// L3: this replica's, but rolled back.
	L3 LocalClass = "L3"
	// L1: WAL and database valid.
	L1 LocalClass = "L1"
)

// RecordClass is what the record says.
type RecordClass string

// The classes of the record.
const (
	// RUnreadable (R!): it could not be read.
	RUnreadable RecordClass = "R!"
	// RLost (R-): it has no inception, or objects of it are lost.
	RLost RecordClass = "R-"
	// R0: no epoch was ever formed, and the newest, if any, is abandoned.
	R0 RecordClass = "R0"
	// Rs: the newest epoch is claimed and has no outcome. Observation.Mine says whether the claim is this replica's.
	Rs RecordClass = "Rs"
	// Rf: the newest formed epoch is open.
	Rf RecordClass = "Rf"
	// Rc: the newest formed epoch is closed, and nothing newer is formed or claimed without outcome.
	Rc RecordClass = "Rc"
)

// RemoteClass is what the other members say.
type RemoteClass string

// The classes of the remote side.
const (
	// Quorum (Q): a member of the newest formed epoch's cluster answered a linearizable list.
	Quorum RemoteClass = "Q"
	// Answers (q): something answers, but no linearizable read.
	Answers RemoteClass = "q"
	// Nobody (N): nobody answers.
	Nobody RemoteClass = "N"
)

// DiskEpoch is how the disk's epoch stands to the record's.
type DiskEpoch string

// The relations. Row 5's "above" is Observation.Ahead, which also compares incarnations and tokens.
const (
	// DiskNone: the disk belongs to no epoch, or it is not known to which.
	DiskNone DiskEpoch = "none"
	// DiskCurrent: the newest epoch that is formed or claimed.
	DiskCurrent DiskEpoch = "current"
	// DiskBelowClaimed: below the newest claimed one, and nothing newer than it is formed.
	DiskBelowClaimed DiskEpoch = "below claimed"
	// DiskBelowFormed: below the newest formed one.
	DiskBelowFormed DiskEpoch = "below formed"
	// DiskAbandoned: its epoch was abandoned.
	DiskAbandoned DiskEpoch = "abandoned"
	// DiskAbove: above the newest of the record.
	DiskAbove DiskEpoch = "above"
)

// Observation is the judged state of one replica: the classes of the membership table and the predicates that its rows
// name. Decide reads nothing else. Classify makes it; the table test enumerates it.
type Observation struct {
	// Fault is an error before any row, as a sentence; empty: none.
	Fault string

	Local     LocalClass
	Record    RecordClass
	Remote    RemoteClass
	DiskEpoch DiskEpoch

	// Running: the own etcd child runs. Local is L1 then.
	Running bool
	// Phase is agent.json's. SameBoot: agent.json's incarnation was taken by this instance in this boot.
	Phase    Phase
	SameBoot bool
	// StartAnyway: an operator ran start-anyway; row 2.
	StartAnyway bool

	// Alone: the running member has had no quorum for longer than an election. Unheard: it has heard of no leader for
	// so long, while there was a quorum. Silent: it says nothing (Directory.Silent). OnlyVoter: nobody else votes.
	Alone, Unheard, Silent, OnlyVoter bool
	// Unusable is what etcd has said each time it ended, one soon after the other, and what only the directory can be
	// the cause of; empty: it has not.
	Unusable string

	// Tries is what this agent has tried, LastWords what etcd said when it last ended by itself in this boot, and Room
	// how full the data disk is, by which what fails on it is explained.
	Tries     Tries
	LastWords string
	Room      Room

	// Superseded: the newest incarnation of my place carries another instance id, and I have had one.
	Superseded bool
	// OnlyOutcomeMissing: all that is lost is the outcome of the disk's epoch, and I hold its token.
	OnlyOutcomeMissing bool
	// Ahead: the disk's epoch or incarnation is above the record's, or its epoch is the record's with another token.
	Ahead bool
	// OtherHistory: the disk's epoch is the record's with another token.
	OtherHistory bool
	// DiskClosed: the disk's epoch has ended.
	DiskClosed bool

	// Mine: the newest claim, without outcome, is this replica's. HasSource: it names a snapshot or a directory.
	// HasToken: the disk carries the claim's token. Marked: and the marker.
	Mine, HasSource, HasToken, Marked bool
	// SeederGone: the newest claim's seeder is proven gone, or I am its successor.
	SeederGone bool
	// NewerOrderForMe: a restore order newer than the newest claim's names my place.
	NewerOrderForMe bool
	// StrangerSince is when somebody else was first seen to answer although nothing is formed; zero: nobody is.
	StrangerSince time.Time
	// NoList: nothing answered, but the Compute API gave no list to say whom to ask.
	NoList bool
	// Preflight is why this VM is not fit to seed; empty: it is.
	Preflight string

	// EndedByOrder: a restore order, not withdrawn, not done, ends the newest formed epoch and was accepted by the
	// replica that it names, and my disk is of that epoch or of none. OrderNamesMe: the newest one names my place.
	// ToAccept: and this replica has to find out first whether it can carry it out.
	EndedByOrder, OrderNamesMe, ToAccept bool
	// Unfit: that was tried, and it cannot (Tries.Unfit).
	Unfit bool
	// Unproven are the instances that took an incarnation of the epoch to be ended and are not proven to run nothing
	// any more.
	Unproven []UnprovenStop
	// Closing: the verdict on the newest order to restore is that it is carried out. Withdrawing is an accepted order
	// that a person takes back and that has no verdict yet; 0: none.
	Closing     bool
	Withdrawing uint64
	// Better is the order that names the replica whose log, by its stopped/ object, reaches further than the named
	// one's; nil: there is none, or the order wants this very source.
	Better *record.RestoreOrder
	// SourceHere: the order's source can be used by this replica and reaches what the order demands. DirectoryIsSource:
	// it is the etcd directory itself.
	SourceHere, DirectoryIsSource bool
	// SourceUnread names an archive that may be the source and cannot be read; empty: there is none.
	SourceUnread string

	// Listed: the linearizable list has an entry with my disk's member id. OwnPlace: that entry is of my own place.
	Listed, OwnPlace bool
	// Removed: a peer answered my member's id with 410.
	Removed bool
	// Ended: the disk's incarnation has ended as it said itself: agent.json says `stopped`, or its stopped/ object is
	// there. EndUnproven: and the order for which it ended is not noted, and the record does not show its end.
	Ended, EndUnproven bool
	// FormerSilent: the newest incarnation of my place is this instance's, or its instance is proven silent.
	FormerSilent bool
	// StopReport is what this replica still has to say in stopped/ before a restore may take it for silent.
	StopReport StopReport
	// Left: the newest order for my place is `leave`. Paused: the newest of pause and resume is a pause that lasts.
	Left, Paused bool

	// OwnIncarnation: the newest incarnation of my place is this instance's, in this boot, on this disk, for this
	// epoch, and agent.json carries its number. Confirmed: and it is confirmed, for the member of agent.json.
	// Pending: it is not confirmed for any member.
	OwnIncarnation, Confirmed, Pending bool
	// Former are the entries of my place in the linearizable list that must be removed before a join, in order.
	Former []record.MemberID
	// Successor is an instance that the list names for my place and the record, as it was read, does not know; empty:
	// there is none. The record was read before that instance took its incarnation.
	Successor string
	// Reusable: the one entry of my place is the one that was added for this disk, has never started, and is a learner.
	Reusable bool
	// ListedByAll: every member that gave a list shows the entry.
	ListedByAll bool
	// PeersSilent: members answer on their client ports, and none on its peer port, where one that joins begins.
	PeersSilent bool
	// NoRoom is why a copy of the state does not fit on the data disk; empty: it may.
	NoRoom string

	// SnapshotOffered and WarmCopyOffered: a single replica's newest snapshot, and a learner's copy of the only voter,
	// are all that is left; a person may order a restore from it. Survivors22 is row 22's condition. None looks at
	// Remote.
	SnapshotOffered, WarmCopyOffered bool
	Survivors22                      PolicyFinding

	Names Names
}

// StopReport is a stopped/ object that this replica has to write: about an incarnation of its own instance, and about
// the log on its disk.
type StopReport struct {
	Owed bool
	// Incarnation is the one that it is written for; 0: Next has to be taken first, because none of this boot and this
	// disk is open.
	Incarnation, Next uint64
	MemberID          record.MemberID
	// WithLog: the disk holds a valid directory of the epoch, and the object says where its log ends.
	WithLog bool
}

// PolicyFinding is what row 22 found; empty: its condition does not hold.
type PolicyFinding string

// What row 22 found.
const (
	// PolicyActs: it holds, and the configuration lets the agent write the order.
	PolicyActs PolicyFinding = "acts"
	// PolicyOffers: it holds, but a person must write the order.
	PolicyOffers PolicyFinding = "offers"
	// PolicyWaitsForDisk: survivors would be enough if a gone voter's disk were gone too, or came back.
	PolicyWaitsForDisk PolicyFinding = "waits for disk"
	// PolicyNotEnough: quorum is gone for good as far as is known, and the survivors may not hold everything.
	PolicyNotEnough PolicyFinding = "not enough"
)

// Names are the values that plans carry and reasons mention. No row is chosen by them.
type Names struct {
	// Place is my place, Answered whoever answered first, Seeder the newest claim's.
	Place, Answered, Seeder string
	// NewestInstance is the instance id of my place's newest incarnation. LaterBoot: this instance's own later boot
	// took it.
	NewestInstance          string
	LaterBoot               bool
	RecordErr, DirectoryErr string
	// DiskEpochNumber, NewestEpoch, FormedEpoch: 0: none. NewestEpoch counts abandoned ones too.
	DiskEpochNumber, NewestEpoch, FormedEpoch uint64
	// MemberID and ClusterID are the disk's.
	MemberID, ClusterID record.MemberID
	// SeederMember is the first member of the disk's epoch, for ActFormedAgain.
	SeederMember record.MemberID
	// Incarnation is the number of my own newest incarnation where there is one, NextIncarnation the one to take.
	Incarnation, NextIncarnation uint64
	// DiskID is the Compute API's id of the own data disk; empty where it is not known.
	DiskID string
	// RestoreNumber and Restore are the newest restore order that is in force.
	RestoreNumber uint64
	Restore       *record.RestoreOrder
	// EndOrder is the newest order that was accepted and ends the newest formed epoch; 0: none.
	EndOrder uint64
	// Claimed is the newest claim's source; SourceArchive is the archived directory that is the source, where it is
	// one.
	Claimed       record.Source
	SourceArchive string
	// PolicyOrder is what row 22 would write; PolicyText what it, or an offer, has to say.
	PolicyOrder *record.RestoreOrder
	PolicyText  string
	// DataDir is the data directory.
	DataDir string
	// Damage is what proves that the record is damaged; RolledBack what proves that the disk is.
	Damage, RolledBack string
}
