package kubeletwatch

import (
	"fmt"
	"time"
)

// Decision is what an observation comes to: a verdict of each unit, and at most one of them has an act.
type Decision struct {
	Runtime, Kubelet Verdict
}

// Decide says how the two units stand and what is done. The runtime comes first: a kubelet whose runtime is not well is
// never acted on, because its restart would fail for the same reason. The memories must have been given the
// observation's units (Memory.Note).
func Decide(l Limits, f Facts, runtime, kubelet Memory) Decision {
	d := Decision{Runtime: decideRuntime(l, f, runtime)}
	d.Kubelet = decideKubelet(l, f, kubelet, d.Runtime)
	return d
}

func decideRuntime(l Limits, f Facts, m Memory) Verdict {
	u := f.Runtime
	if v, done := decideUnit(u, f.RuntimeErr, m, f.Now); done {
		return v
	}
	misses := f.CRI.Misses >= l.Misses && f.Now-f.CRI.Since >= l.patience()
	asked := fmt.Sprintf("it has not answered %d questions in a row, for %s: %s", f.CRI.Misses,
		seconds(f.Now-f.CRI.Since), f.CRI.Error)
	switch {
	case !misses && f.CRI.Last != Answered && !f.CRI.Ever && f.Now-u.Started < l.StartWithin:
		return Verdict{State: Starting, Reason: "it has not answered yet, for " + seconds(f.Now-u.Started)}
	case !misses:
		return Verdict{State: Running, Reason: "it runs"}
	case !f.CRI.Ever && f.Now-u.Started < l.StartWithin:
		return Verdict{State: Starting, Reason: fmt.Sprintf("it has not answered since its start %s ago; up to "+
			"%s it is left alone", seconds(f.Now-u.Started), l.StartWithin)}
	case f.CRI.Last == Unreachable && !f.CRI.Ever:
		return Verdict{State: Unreached, Reason: "nobody was ever seen at its socket: " + f.CRI.Error}
	case u.KillMode != "process" && u.KillMode != "none":
		return Verdict{State: Unsafe, Reason: asked + "; its unit has KillMode=" + u.KillMode +
			", so a restart would end the containers"}
	}
	return m.allow(Verdict{State: Hung, Reason: asked}, Restart, f.Now)
}

func decideKubelet(l Limits, f Facts, m Memory, runtime Verdict) Verdict {
	u := f.Kubelet
	if v, done := decideUnit(u, f.KubeletErr, m, f.Now); done {
		return afterRuntime(v, runtime)
	}
	age := f.Now - u.Started
	if !f.Listening {
		if age < l.StartWithin {
			return Verdict{State: Starting, Reason: fmt.Sprintf("its start-up has lasted %s; up to %s it is left alone",
				seconds(age), l.StartWithin)}
		}
		return afterRuntime(m.allow(Verdict{State: HungAtStart,
			Reason: fmt.Sprintf("its start-up has not ended after %s",
				seconds(age))}, Restart, f.Now), runtime)
	}
	if v, hung := decideHang(l, f, m); hung {
		return afterRuntime(m.allow(v, Restart, f.Now), runtime)
	} else if v.State != "" {
		return v
	}
	switch {
	case !runtime.State.Well() && runtime.State != Absent:
		return Verdict{State: RuntimeFirst, Reason: "its runtime is not well"}
	case f.Network != "":
		return Verdict{State: NoNetwork, Reason: f.Network}
	case !f.APIServer:
		return Verdict{State: NoAPIServer, Reason: "kube-apiserver of this master is not ready, so nobody hears of it"}
	}
	return Verdict{State: Running, Reason: "it " + alive(u, f.Now)}
}

// decideHang judges a kubelet whose start-up is over by its pings, and by its port only where it does not ping.
func decideHang(l Limits, f Facts, m Memory) (v Verdict, hung bool) {
	u := f.Kubelet
	if m.Overdue != 0 && f.Now-m.Overdue >= u.PingEvery {
		return Verdict{State: Hung, Reason: fmt.Sprintf("it has not pinged for %s, and systemd's watchdog has "+
			"not ended it", seconds(f.Now-u.pinged()))}, true
	}
	if f.Port.Misses < l.Misses || f.Now-f.Port.Since < l.patience() {
		return Verdict{}, false
	}
	lasting := seconds(f.Now - f.Port.Since)
	if f.Port.Last == Silent && u.PingEvery == 0 {
		return Verdict{State: Hung, Reason: fmt.Sprintf("its health port takes connections and has not answered for %s",
			lasting)}, true
	}
	return Verdict{State: PortBlocked, Reason: fmt.Sprintf("its health port has not answered for %s (%s), but it %s",
		lasting, f.Port.Error, alive(u, f.Now))}, false
}

// alive says by what the kubelet is known to live.
func alive(u Unit, now time.Duration) string {
	if u.PingEvery == 0 {
		return "runs"
	}
	return fmt.Sprintf("pinged %s ago", seconds(now-u.pinged()))
}

// afterRuntime takes the kubelet's act away while its runtime is not well. One that is parked stays parked: its process
// is in the way whatever the runtime does.
func afterRuntime(v, runtime Verdict) Verdict {
	if v.Act == Nothing || v.Act == Park || runtime.State.Well() || runtime.State == Absent {
		return v
	}
	return Verdict{State: RuntimeFirst, Reason: fmt.Sprintf("it is %s (%s), but its runtime is %s", v.State, v.Reason,
		runtime.State)}
}

// decideUnit is what systemd's own words come to, for either unit. done: there is nothing more to find out.
func decideUnit(u Unit, err string, m Memory, now time.Duration) (v Verdict, done bool) {
	switch {
	case err != "":
		return Verdict{State: Unknown, Reason: err}, true
	case u.Load == "not-found":
		return Verdict{State: Absent, Reason: "there is no such unit"}, true
	case u.Load == "masked":
		return Verdict{State: Masked, Reason: "it is masked, and left alone"}, true
	case u.Load != "loaded":
		return Verdict{State: Unknown, Reason: "systemd cannot load it: " + u.Load}, true
	}
	if v, done := decideUnkilled(u, m, now); done {
		return v, true
	}
	still := u.Active == "inactive" || u.Active == "failed"
	switch {
	case u.Job && u.Active != "activating":
		return Verdict{State: Busy, Reason: "systemd has a job for it"}, true
	case !still && m.looping(u, now):
		return Verdict{State: CrashLoop, Reason: fmt.Sprintf("systemd has started it %d times in %s%s", len(m.Exits),
			loopSpan, last(u))}, true
	case u.Active == "inactive":
		return Verdict{State: Stopped, Reason: "it is stopped, and left alone"}, true
	case u.Active == "failed":
		return decideFailed(u, m, now), true
	case u.Active == "active" && u.PID != 0:
		return Verdict{}, false
	}
	return decideBetween(u), true
}

// decideBetween is of a unit on its way from one state to another.
func decideBetween(u Unit) Verdict {
	switch {
	case u.Sub == "auto-restart":
		return Verdict{State: Exited, Reason: "systemd starts it again in a moment" + last(u)}
	case u.Sub == "start-pre" || u.Sub == "condition":
		return Verdict{State: Waiting, Reason: "its unit waits for what it needs before it starts"}
	case u.Active == "activating":
		return Verdict{State: Starting, Reason: "systemd starts it (" + u.Sub + ")"}
	}
	return Verdict{State: Busy, Reason: "systemd says " + u.Active + " (" + u.Sub + ")"}
}

// decideFailed starts what systemd has given up. A stop that had to kill, ends with the result timeout: that was a
// person's stop.
func decideFailed(u Unit, m Memory, now time.Duration) Verdict {
	if u.Result == "timeout" {
		return Verdict{State: Stopped, Reason: "it was stopped and had to be killed; it is left alone"}
	}
	return m.allow(Verdict{State: Failed, Reason: "systemd has given up starting it: " + u.Result + last(u)}, Start,
		now)
}

// decideUnkilled is of a unit with a main process, or a former one, that SIGKILL does not end, or that was parked for
// one.
func decideUnkilled(u Unit, m Memory, now time.Duration) (v Verdict, done bool) {
	unkilled := m.unkilled(u)
	if unkilled == nil {
		if m.Parked == nil {
			return Verdict{}, false
		}
		if u.Active == "active" || u.Active == "activating" || u.Job {
			return Verdict{}, false // somebody has started it
		}
		return Verdict{State: Stopped, Reason: "the process that did not end has gone", Act: Start}, true
	}
	down := u.Active == "inactive" || u.Active == "failed"
	reason := fmt.Sprintf("process %d was killed and does not end: it hangs in the kernel, and only a reboot helps",
		unkilled.PID)
	switch {
	case m.Parked != nil && (down || u.Active == "deactivating"):
		return Verdict{State: Unkillable, Reason: reason}, true
	case now-m.Unkilled < killPatience:
		return Verdict{}, false
	case down:
		return Verdict{State: Unkillable, Reason: reason}, true
	}
	return Verdict{State: Unkillable, Reason: reason, Act: Park}, true
}

// last is how the process before ended, where it is known.
func last(u Unit) string {
	if u.Exit == "" {
		return ""
	}
	return "; the last ended with " + u.Exit
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }
