package table

import (
	"fmt"
	"regexp"
	"time"
)

// MemberEnd is what etcd said when it last ended itself, by a panic or a fatal error, and how often it said so in a
// row. The child writes it on a tmpfs before it dies, so it is of this boot. The agent removes it together with the
// directory that it was about. The child removes it once it serves: then it has caught up with its leader on that
// directory. Else the next start of the agent, a year later, would put a voter away that lacks nothing.
type MemberEnd struct {
	// Text is what etcd said; empty: it has not ended so.
	Text string `json:"text"`
	// Times is how often one soon after the other, with the same complaint where it is one of the directory.
	Times int       `json:"times"`
	Time  time.Time `json:"time"`
	// Log is which folder the log was in (logFolder): another directory that a person puts in its place has not said
	// this.
	Log string `json:"log"`
}

const (
	// UnusableEnds is how often etcd must have said the same of a directory before it is believed: one end can be read
	// in a log, and proves enough by itself, but a directory is put away for it.
	UnusableEnds = 3
)

// aboutTheDirectory are etcd's messages that can only be about what is on the disk: raft compares the indexes in its
// log with one another, or with what this member has acknowledged to the leader. A port in use, a full or failing disk,
// a certificate and lack of memory cause none of them: those pass, and the directory is good.
//
// A message is added only with the place in etcd or raft that says it, and the reason why nothing else can. Two are
// left out. "applied(5) is out of range" (raft/log.go) counts from the log's snapshot, and etcd, which starts raft
// without Config.Applied, itself skips what the database holds already. "entry 5 conflict with committed entry" says
// that the leader lacks what this log knows to be committed, so the only copy may be here.
var aboutTheDirectory = []*regexp.Regexp{
	// raft/log.go commitTo: the leader has acknowledgements of this member for entries that its log does not have.
	regexp.MustCompile(`tocommit\(\d+\) is out of range \[lastIndex\(\d+\)\]`),
	// raft/raft.go loadState: the commit index that was saved lies beyond the log that was saved, at each start. etcd
	// writes entries before it; but what kind a record is stands outside its checksum, and an entry that is read as
	// such a state is of one index more than the log then has.
	regexp.MustCompile(`state\.commit \d+ is out of range \[\d+, \d+\]`),
	// membership/cluster.go UpdateAttributes: the log names a member that the database neither has nor had. Every
	// member is added before it is named, so the database is older than the index that it says it reaches.
	regexp.MustCompile(`^failed to update; member unknown$`),
}

// complaint is which of the messages about a directory a text is; 0: none.
func complaint(text string) int {
	for i, message := range aboutTheDirectory {
		if message.MatchString(text) {
			return i + 1
		}
	}
	return 0
}

// Unusable is what etcd says of the directory, if it has said so often enough; else empty.
func (e MemberEnd) Unusable() string {
	if e.Times < UnusableEnds || complaint(e.Text) == 0 {
		return ""
	}
	return fmt.Sprintf("it ended %d times, one soon after the other, with %q", e.Times, e.Text)
}

// After is the end that follows on this one.
func (e MemberEnd) After(text, log string, now time.Time) MemberEnd {
	next := MemberEnd{Text: text, Times: 1, Time: now, Log: log}
	if e.Text != "" && e.Log == log && complaint(e.Text) == complaint(text) && now.Sub(e.Time) <= soonAfter {
		next.Times = e.Times + 1
	}
	return next
}
