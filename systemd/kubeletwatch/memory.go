package kubeletwatch

import (
	"fmt"
	"slices"
	"time"
)

// The budget: the first act is due at once, and each further one so long after the one before. After the last, only a
// person helps: a restart that did not help four times is not the remedy.
var pauses = []time.Duration{0, time.Minute, 2 * time.Minute, 4 * time.Minute}

// calm is how long a unit must be well for its budget to be whole again.
const calm = 30 * time.Minute

// Memory is what has to be known of a unit's past. It lasts for one boot of the VM, also beyond the agent's end.
type Memory struct {
	// Acts are when the unit was restarted or started, since it was last calm.
	Acts []time.Duration `json:"acts,omitempty"`
	// Parked is the process for which the unit was parked.
	Parked *Process `json:"parked,omitempty"`
	// PID, Started and Restarts are of the last observation.
	PID      int           `json:"pid,omitempty"`
	Started  time.Duration `json:"started,omitempty"`
	Restarts uint32        `json:"restarts,omitempty"`
	// Mains are the main process, and former ones that outlive SIGKILL.
	Mains []Process `json:"mains,omitempty"`
	// Exits are when systemd had to start it again, within loopSpan.
	Exits []time.Duration `json:"exits,omitempty"`
	// Well is since when the unit has been well, Unkilled since when one of Mains has outlived SIGKILL,
	// Overdue since when its ping has been seen to lack for two intervals; 0: it is not so. The next agent begins anew:
	// what it has not seen lasting does not count.
	Well     time.Duration `json:"-"`
	Unkilled time.Duration `json:"-"`
	Overdue  time.Duration `json:"-"`
}

// Note is the memory after an observation of its unit. ended says that the process of the observation before has gone.
func (m Memory) Note(u Unit, now time.Duration) (after Memory, ended bool) {
	ended = m.PID != 0 && (u.PID != m.PID || u.Started != m.Started)
	m.Exits = slices.DeleteFunc(slices.Clone(m.Exits), func(at time.Duration) bool { return now-at > loopSpan })
	if u.Restarts > m.Restarts {
		m.Exits = append(m.Exits, now)
	}
	m.PID, m.Started, m.Restarts = u.PID, u.Started, u.Restarts
	m.Mains = slices.DeleteFunc(slices.Clone(m.Mains),
		func(p Process) bool { return p == u.main() || !slices.Contains(u.Unkilled, p) })
	if u.PID != 0 {
		m.Mains = append(m.Mains, u.main())
	}
	m.Unkilled = lasting(m.Unkilled, m.unkilled(u) != nil, now)
	m.Overdue = lasting(m.Overdue, u.overdue(now), now)
	if m.unkilled(u) == nil && u.PID != 0 {
		m.Parked = nil // somebody has started it; a stop after that is a person's
	}
	return m, ended
}

// unkilled is a process that outlives SIGKILL and is or was the unit's main one; nil: there is none. Others, such as a
// shim or a mount, do not keep the unit from working.
func (m Memory) unkilled(u Unit) *Process {
	for _, p := range u.Unkilled {
		if slices.Contains(m.Mains, p) {
			return &p
		}
	}
	return nil
}

// lasting is since when something has been so; 0: it is not.
func lasting(since time.Duration, so bool, now time.Duration) time.Duration {
	if so && since == 0 {
		return now
	}
	if !so {
		return 0
	}
	return since
}

// Settle is the memory after a verdict: a unit that has been well for long enough has its whole budget again.
func (m Memory) Settle(v Verdict, now time.Duration) Memory {
	m.Well = lasting(m.Well, v.State.Well(), now)
	if m.Well != 0 && now-m.Well >= calm {
		m.Acts = nil
	}
	return m
}

// Did is the memory after an act. It has to be written down before the act is carried out.
func (m Memory) Did(act Act, u Unit, now time.Duration) Memory {
	switch act {
	case Park:
		m.Parked = m.unkilled(u)
	case Restart, Start:
		m.Acts, m.Parked = append(slices.Clone(m.Acts), now), nil
	}
	return m
}

// allow gives a verdict its act, if the budget does.
func (m Memory) allow(v Verdict, act Act, now time.Duration) Verdict {
	n := len(m.Acts)
	if n >= len(pauses) {
		v.Spent, v.Held = true, fmt.Sprintf("%d restarts have not helped: no more are made before it was well for %s",
			n,
			calm)
		return v
	}
	if n > 0 {
		if due := m.Acts[n-1] + pauses[n]; now < due {
			v.Held = fmt.Sprintf("%d of %d restarts are made; the next is due in %s", n, len(pauses),
				(due - now).Round(time.Second))
			return v
		}
	}
	v.Act = act
	return v
}

// looping says that the unit ends by itself again and again.
func (m Memory) looping(u Unit, now time.Duration) bool {
	return len(m.Exits) >= loopExits && (u.PID == 0 || now-u.Started < loopOver)
}
