package table

import (
	"time"

	"github.com/quorate/quorate/internal/record"
)

// Archive is one archived directory and how far its log reaches.
type Archive struct {
	Name string
	// Time is when it was archived, as its name says; zero: the name is a person's.
	Time time.Time
	// ClusterID and MemberID are of its log; 0: that could not be read.
	ClusterID, MemberID record.MemberID
	// Term and LastIndex are of its last entry; 0: it has none.
	Term, LastIndex uint64
	// OpenErr is why it cannot be used; nil: its WAL and database are valid.
	OpenErr error
	// ReadErr is why it could not be read, which says nothing of what it holds.
	ReadErr error
}

// empty: its log was read and holds no entry, as that of a learner that never got the state.
func (a Archive) empty() bool { return a.MemberID != 0 && a.LastIndex == 0 }
