package lease

import (
	"fmt"
	"strings"
	"time"
)

// Seen is a Lease as it was read.
type Seen struct {
	// Holder is empty while nobody holds it. Renewed is by the holder's clock.
	Holder  string
	Renewed time.Time
}

// Is says whether nothing has happened to the lease between the two reads.
func (s Seen) Is(other Seen) bool { return s.Holder == other.Holder && s.Renewed.Equal(other.Renewed) }

// Ended is a process that elected itself and has ended on this machine, with all that it had started.
type Ended struct {
	// Host is the machine's host name, with which the holder's identity begins. HolderIsHost: the identity is nothing
	// else, so that the process's successor is the same holder.
	Host         string
	HolderIsHost bool
	// HostShared: another replica of the cluster may have the same host name.
	HostShared bool
	// Launched and Exited are by the clock of this machine, as the process's renewals are.
	Launched, Exited time.Time
	// RunsAgain: a successor was launched meanwhile.
	RunsAgain bool
}

// MayRelease says whether the process that ended has left the lease behind. why is the reason where it has not, or
// where nobody can tell: the lease runs out then.
func MayRelease(e Ended, s Seen) (yes bool, why string) {
	switch {
	case s.Holder == "":
		return false, "nobody holds it"
	case !HeldBy(s.Holder, e.Host, e.HolderIsHost):
		return false, fmt.Sprintf("%q holds it, which is another replica's", s.Holder)
	case e.HostShared:
		return false, fmt.Sprintf("%q holds it, and another replica has this host name too", s.Holder)
	case s.Renewed.After(e.Exited):
		return false, "it was renewed after the process had ended"
	case s.Renewed.Before(e.Launched):
		return false, "it was not renewed while the process ran, so another process held it"
	case e.HolderIsHost && e.RunsAgain:
		return false, "the process's successor is the same holder, and runs"
	}
	return true, ""
}

// HeldBy says whether the holder's identity is one of a process on that host. bare: its identity is the host's name;
// else a name of its own follows.
func HeldBy(holder, host string, bare bool) bool {
	if bare {
		return holder == host
	}
	return strings.HasPrefix(holder, host+"_")
}
