package etcdmember

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

// The distance between two starts of a member that does not stay up while the boot still decides on it: the first one
// again is at once, then it doubles. Once the boot is done the supervisor has its own.
const (
	firstDistance = time.Second
	mostDistance  = 30 * time.Second
	// mostJoinDistance is for joins: each try takes an incarnation, which stays in the record for ever, and an entry in
	// the list of members.
	mostJoinDistance = 10 * time.Minute
	// stayedUp is how long a member has to have run for its end to be a new story.
	stayedUp = time.Minute
)

// pacing counts the starts that came one soon after the other.
type pacing struct {
	last time.Time
	runs int
	// waits is the distance that the next start is held to.
	waits time.Duration
}

// started notes a start.
func (p *pacing) started(now time.Time) {
	if now.Sub(p.last) > stayedUp+p.waits {
		p.runs = 0
	}
	p.last = now
	p.runs++
}

// distance is how long after the last start the next one may be.
func (p *pacing) distance(most time.Duration) time.Duration {
	if p.runs < 2 {
		return 0
	}
	return min(firstDistance<<min(p.runs-2, 10), most)
}

// early is how long the next start has to wait still, where distances grow to most.
func (p *pacing) early(now time.Time, most time.Duration) time.Duration {
	p.waits = p.distance(most)
	return p.last.Add(p.waits).Sub(now)
}

// failure is the step that failed last, as long as it is the next one again.
type failure struct {
	row   table.Row
	act   table.Act
	err   error
	tries int
}

func (f *failure) same(p table.Plan) bool { return f != nil && f.row == p.Row && f.act == p.Act }

// hold turns a step that must not be taken now into a wait that says why: the start of a member that has just ended,
// again, or the incarnation that is taken first. A step that has failed is taken again, and shown as what is waited
// for.
func (m *Membership) hold(f table.Facts, p table.Plan) table.Plan {
	if !m.failure.same(p) {
		m.failure = nil
	}
	if silent := m.portsSilentFor(f, p); waitsForPorts(p) && silent < portPatience {
		p.Blocked = nil // most often it passes, and the join goes on
	}
	if startsMember(p) && !f.Directory.Running {
		if wait, held := m.pace(f, p); held {
			return wait
		}
	}
	if p, full := m.noRoom(f, p, false); full {
		return p
	}
	if p.Act == table.ActAccept && p.OrderNumber == m.unfit {
		return p.Waiting("restore-unfit", fmt.Sprintf("restore order %d cannot be carried out here: %v.", p.OrderNumber,
			m.unfitWhy),
			"This order has ended nothing. It is tried again by itself; or `quorate restore --from SOURCE` orders it "+
				"of another, and `quorate orders withdraw` takes it back.")
	}
	if m.failure != nil && p.Blocked == nil {
		return p.Waiting("step-failed", fmt.Sprintf("the step to %s failed: %v.", p.Act, m.failure.err),
			"It is tried again by itself.")
	}
	return p
}

// pace turns the start of a member that has just ended, again, into a wait.
func (m *Membership) pace(f table.Facts, p table.Plan) (table.Plan, bool) {
	most := mostDistance
	if p.Joins() {
		most = mostJoinDistance
	}
	if m.starts.early(f.Now, most) <= 0 {
		return p, false
	}
	if full, ok := m.noRoom(f, p, true); ok {
		full.Act = table.ActWait
		return full, true
	}
	said := "its log says why"
	if text := f.Directory.End.Text; text != "" {
		said = fmt.Sprintf("its last word was %q", text)
	}
	if m.checked != "" {
		said += "; " + m.checked
	}
	return table.Plan{Act: table.ActWait, Row: p.Row}.Waiting("etcd-does-not-stay-up",
		fmt.Sprintf("etcd was started %d times, one soon after the other, and has ended each time: %s.",
			m.starts.runs, said),
		fmt.Sprintf("It is started again by itself, at most %s after its last start.", most)), true
}

// portPatience is how long no peer's port may have answered before a joining replica says so: a member that is
// started again listens within two or three seconds, and a person must not be sent to the firewall for that.
const portPatience = 5 * time.Second

// portsSilentFor is how long a join has waited for the peers' ports.
func (m *Membership) portsSilentFor(f table.Facts, p table.Plan) time.Duration {
	return lasts(&m.portsSilent, waitsForPorts(p), f.Now)
}

func waitsForPorts(p table.Plan) bool {
	return p.Act == table.ActWait && p.Blocked != nil && p.Blocked.Name == "peers-do-not-connect"
}

// noteSilence says how long this running member has been without a quorum, or without a leader beside one.
func (m *Membership) noteSilence(f *table.Facts) {
	quorum := table.AnswersQuorum(*f)
	f.Alone = lasts(&m.alone, f.Directory.Running && !quorum, f.Now)
	f.Unheard = lasts(&m.unheard, f.Directory.Leaderless && quorum, f.Now)
}

// lasts is how long something has been so at each look. since is when it was first seen; zero: it was not so at the
// last look.
func lasts(since *time.Time, so bool, now time.Time) time.Duration {
	if !so {
		*since = time.Time{}
		return 0
	}
	if since.IsZero() {
		*since = now
	}
	return now.Sub(*since)
}
