package table

import "fmt"

// JoinSpare is what a joining member needs besides the copy of the database: the two files of 64 MiB with which etcd
// begins a log.
const JoinSpare = 128 << 20

// Room is how full the data disk is; bytes. Zero: not known.
type Room struct{ Free, Total int64 }

// findRoom says where a copy of the state surely does not fit. A learner that is added all the same ends in a full
// disk, is taken out, and leaves a directory each time.
func (h History) findRoom(o *Observation) {
	need := h.stateSize()
	if need == 0 || h.Room.Total == 0 || h.Room.Free >= need+JoinSpare {
		return
	}
	o.NoRoom = fmt.Sprintf("it has %d MiB free, the database has %d MiB, and etcd's log begins with %d MiB",
		h.Room.Free>>20, need>>20, JoinSpare>>20)
}

// stateSize is what a joiner is sent: the leader's database as it is, or, where the leader did not answer in time, the
// smallest of those that did; 0: not known.
func (h History) stateSize() (size int64) {
	for _, a := range h.Answers {
		if h.Formed == nil || a.ClusterID != h.Formed.Outcome.Formed.ClusterID || a.Database == 0 {
			continue
		}
		if a.Leads {
			return a.Database
		}
		if size == 0 || a.Database < size {
			size = a.Database
		}
	}
	return size
}
