package kubeletwatch

import (
	"strings"
	"testing"
	"time"
)

// limits are the document's defaults.
var limits = Limits{AnswerWithin: 10 * time.Second, Misses: 3, StartWithin: 5 * time.Minute}

// now is an hour after the VM's boot.
const now = time.Hour

// world is what one case changes: everything is well in it.
type world struct {
	Facts
	runtime, kubelet Memory
}

func well() world {
	return world{Facts: Facts{
		Now: now,
		Runtime: Unit{Load: "loaded", Active: "active", Sub: "running", Result: "success",
			KillMode: "process", PID: 100, Started: time.Minute},
		Kubelet: Unit{Load: "loaded", Active: "active", Sub: "running", Result: "success",
			KillMode: "process", PID: 200, Started: 2 * time.Minute, Pinged: now - 10*time.Second,
			PingEvery: 30 * time.Second},
		CRI: Answers{Last: Answered, Ever: true}, Port: Answers{Last: Answered, Ever: true},
		Listening: true, APIServer: true,
	}, runtime: Memory{Mains: []Process{{PID: 100}}}, kubelet: Memory{Mains: []Process{{PID: 200}}}}
}

// missing are answers that have failed for so long.
func missing(a Answer, lasting time.Duration) Answers {
	return Answers{Last: a, Misses: 3, Since: now - lasting, Ever: true, Error: "it failed"}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		change           func(w *world)
		runtime, kubelet State
		// act is of the unit with the name before the colon; empty: nothing is done.
		act    string
		reason string // is in the reason, or in what holds the act back
	}{
		"all is well": {func(*world) {}, Running, Running, "", ""},

		"the runtime is silent": {func(w *world) { w.CRI = missing(Silent, 30*time.Second) },
			Hung, RuntimeFirst, "runtime: restart", "30s"},
		"the runtime is silent, for too short a time": {func(w *world) { w.CRI = missing(Silent, 20*time.Second) },
			Running, Running, "", ""},
		"the runtime was silent twice": {func(w *world) { w.CRI = missing(Silent, time.Minute); w.CRI.Misses = 2 },
			Running, Running, "", ""},
		"a runtime that answered has lost its socket": {func(w *world) { w.CRI = missing(Unreachable, 30*time.Second) },
			Hung, RuntimeFirst, "runtime: restart", "failed"},
		"the socket in the document is nobody's": {func(w *world) {
			w.CRI = missing(Unreachable, time.Hour)
			w.CRI.Ever = false
		}, Unreached, RuntimeFirst, "", "it failed"},
		"a runtime reads its state for 3 minutes": {func(w *world) {
			w.Runtime.Started, w.CRI = now-3*time.Minute, missing(Silent, 2*time.Minute)
			w.CRI.Ever = false
		}, Starting, RuntimeFirst, "", "left alone"},
		"a runtime hangs at its start for 5 minutes": {func(w *world) {
			w.Runtime.Started, w.CRI = now-5*time.Minute, missing(Silent, 4*time.Minute)
			w.CRI.Ever = false
		}, Hung, RuntimeFirst, "runtime: restart", ""},
		"a restart of the runtime would end the containers": {func(w *world) {
			w.CRI = missing(Silent, time.Minute)
			w.Runtime.KillMode = "control-group"
		}, Unsafe, RuntimeFirst, "", "end the containers"},
		"the runtime was killed, and systemd starts it again": {func(w *world) {
			w.Runtime.Active, w.Runtime.Sub, w.Runtime.PID, w.Runtime.Exit = "activating", "auto-restart", 0, "SIGKILL"
		}, Exited, RuntimeFirst, "", "SIGKILL"},
		"the runtime was stopped on purpose": {func(w *world) {
			w.Runtime.Active, w.Runtime.Sub, w.Runtime.PID = "inactive", "dead", 0
		}, Stopped, RuntimeFirst, "", "left alone"},
		"another runtime, which is no unit": {func(w *world) { w.Runtime = Unit{Load: "not-found"} },
			Absent, Running, "", "no such unit"},

		"the port is blocked, and the kubelet pings": {func(w *world) { w.Port = missing(Unreachable, time.Hour) },
			Running, PortBlocked, "", "pinged 10s ago"},
		"the port is silent, and the kubelet pings": {func(w *world) { w.Port = missing(Silent, time.Hour) },
			Running, PortBlocked, "", "pinged 10s ago"},
		"the port is blocked, and the unit has no watchdog": {func(w *world) {
			w.Port, w.Kubelet.PingEvery = missing(Unreachable, time.Hour), 0
		}, Running, PortBlocked, "", "runs"},
		"the port is silent, and the unit has no watchdog": {func(w *world) {
			w.Port, w.Kubelet.PingEvery = missing(Silent, 30*time.Second), 0
		}, Running, Hung, "kubelet: restart", "takes connections"},
		"pings have just stopped: systemd acts": {func(w *world) { w.Kubelet.Pinged = now - time.Minute },
			Running, Running, "", ""},
		"pings have stopped, and systemd does not act": {func(w *world) {
			w.Kubelet.Pinged, w.kubelet.Overdue = now-91*time.Second, now-30*time.Second
		}, Running, Hung, "kubelet: restart", "1m31s"},
		"pings lack since the VM stood still": {func(w *world) {
			w.Kubelet.Pinged, w.kubelet.Overdue = now-time.Hour/2, now-5*time.Second
		}, Running, Running, "", ""},

		"a start-up of 3 minutes": {func(w *world) { w.Kubelet.Started, w.Listening = now-3*time.Minute, false },
			Running, Starting, "", "left alone"},
		"a start-up that pings and does not end": {func(w *world) {
			w.Kubelet.Started, w.Listening = now-5*time.Minute,
				false
		},
			Running, HungAtStart, "kubelet: restart", "5m0s"},
		"a start-up that does not end, for want of the runtime": {func(w *world) {
			w.Kubelet.Started, w.Listening, w.CRI = now-5*time.Minute, false, missing(Silent, time.Minute)
		}, Hung, RuntimeFirst, "runtime: restart", ""},
		"a unit that waits for its certificates": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.PID, w.Kubelet.Job = "activating", "start-pre", 0, true
		}, Running, Waiting, "", "waits"},
		"no CNI file": {func(w *world) { w.Network = "cni plugin not initialized" }, Running, NoNetwork, "",
			"cni plugin"},
		"the apiserver is away": {func(w *world) { w.APIServer = false }, Running, NoAPIServer, "", "kube-apiserver"},

		"the kubelet was killed, and systemd starts it again": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.PID, w.Kubelet.Exit = "activating", "auto-restart", 0, "SIGKILL"
		}, Running, Exited, "", "SIGKILL"},
		"a crash loop of its own": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.PID, w.Kubelet.Exit = "activating", "auto-restart", 0,
				"exit code 1"
			w.kubelet.Exits = []time.Duration{now - 40*time.Second, now - 30*time.Second, now - 20*time.Second,
				now - 10*time.Second, now}
		}, Running, CrashLoop, "", "exit code 1"},
		"a crash loop that is over": {func(w *world) {
			w.Kubelet.Started = now - 2*time.Minute
			w.kubelet.Exits = []time.Duration{now - 4*time.Minute, now - 3*time.Minute, now - 140*time.Second,
				now - 130*time.Second, now - 2*time.Minute}
		}, Running, Running, "", ""},
		"systemd has given up": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.Result, w.Kubelet.PID = "failed", "failed", "start-limit-hit", 0
		}, Running, Failed, "kubelet: start", "start-limit-hit"},
		"systemd has given up, and the runtime hangs": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.Result, w.Kubelet.PID = "failed", "failed", "exit-code", 0
			w.CRI = missing(Silent, time.Minute)
		}, Hung, RuntimeFirst, "runtime: restart", ""},
		"a stop on purpose that had to kill": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.Result, w.Kubelet.PID = "failed", "failed", "timeout", 0
		}, Running, Stopped, "", "left alone"},
		"stopped on purpose": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.PID = "inactive", "dead", 0
		}, Running, Stopped, "", "left alone"},
		"masked": {func(w *world) { w.Kubelet.Load, w.Kubelet.Active, w.Kubelet.PID = "masked", "inactive", 0 },
			Running, Masked, "", "left alone"},
		"masked while it hangs at its start": {func(w *world) {
			w.Kubelet.Load, w.Kubelet.Started, w.Listening = "masked", now-time.Hour/2, false
		}, Running, Masked, "", "left alone"},
		"a unit file with a mistake": {func(w *world) { w.Kubelet.Load, w.Kubelet.Active = "bad-setting", "inactive" },
			Running, Unknown, "", "bad-setting"},
		"somebody restarts it": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.Job = "deactivating",
				"stop-sigterm", true
		}, Running, Busy, "", "job"},
		"systemd does not answer": {func(w *world) { w.KubeletErr, w.RuntimeErr = "no bus", "no bus" },
			Unknown, Unknown, "", "no bus"},

		"SIGKILL was sent just now": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.Unkilled = "deactivating", "stop-sigkill", []Process{{PID: 200}}
			w.kubelet.Unkilled = now - 9*time.Second
		}, Running, Busy, "", "stop-sigkill"},
		"SIGKILL does not end it": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Sub, w.Kubelet.Unkilled = "deactivating", "stop-sigkill", []Process{{PID: 200}}
			w.kubelet.Unkilled = now - 10*time.Second
		}, Running, Unkillable, "kubelet: park", "only a reboot helps"},
		"a second one runs next to one that does not end": {func(w *world) {
			w.Kubelet.PID, w.Kubelet.Unkilled, w.kubelet.Unkilled = 300, []Process{{PID: 200}}, now-time.Minute
		}, Running, Unkillable, "kubelet: park", "process 200"},
		"parked": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.PID, w.Kubelet.Unkilled = "failed", 0, []Process{{PID: 200}}
			w.kubelet.Unkilled, w.kubelet.Parked = now-time.Hour/2, &Process{PID: 200}
		}, Running, Unkillable, "", "only a reboot helps"},
		"parked, by an agent before this one": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.PID, w.Kubelet.Unkilled = "failed", 0, []Process{{PID: 200}}
			w.kubelet.Unkilled, w.kubelet.Parked = now, &Process{PID: 200}
		}, Running, Unkillable, "", "only a reboot helps"},
		"what it was parked for has ended": {func(w *world) {
			w.Kubelet.Active, w.Kubelet.Result, w.Kubelet.PID = "failed", "watchdog", 0
			w.kubelet.Parked = &Process{PID: 200}
		}, Running, Stopped, "kubelet: start", "has gone"},
		"a shim of the runtime does not end, and the runtime answers": {func(w *world) {
			w.Runtime.Unkilled, w.runtime.Unkilled = []Process{{PID: 300}}, now-time.Minute
		}, Running, Running, "", ""},
		"another process has the id of a former one": {func(w *world) {
			w.Kubelet.Unkilled, w.kubelet.Unkilled = []Process{{PID: 200, Started: 7}}, now-time.Minute
		}, Running, Running, "", ""},
		"the runtime's process does not end, and is parked while the kubelet runs": {func(w *world) {
			w.Runtime.Active, w.Runtime.Unkilled, w.runtime.Unkilled = "deactivating", []Process{{PID: 100}},
				now-time.Minute
		}, Unkillable, RuntimeFirst, "runtime: park", "process 100"},

		"the budget has a pause": {func(w *world) {
			w.CRI, w.runtime.Acts = missing(Silent, time.Minute), []time.Duration{now - 50*time.Second}
		}, Hung, RuntimeFirst, "", "the next is due in 10s"},
		"the pause is over": {func(w *world) {
			w.CRI, w.runtime.Acts = missing(Silent, time.Minute), []time.Duration{now - time.Minute}
		}, Hung, RuntimeFirst, "runtime: restart", ""},
		"the third waits two minutes": {func(w *world) {
			w.CRI, w.runtime.Acts = missing(Silent, time.Minute), []time.Duration{now - time.Hour/2, now - time.Minute}
		}, Hung, RuntimeFirst, "", "the next is due in 1m0s"},
		"the budget is spent": {func(w *world) {
			w.CRI, w.runtime.Acts = missing(Silent, time.Minute), []time.Duration{0, 1, 2, 3}
		}, Hung, RuntimeFirst, "", "no more are made"},
		"the runtime's budget is not the kubelet's": {func(w *world) {
			w.Kubelet.Started, w.Listening, w.runtime.Acts = now-time.Hour/2, false, []time.Duration{0, 1, 2, 3}
		}, Running, HungAtStart, "kubelet: restart", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := well()
			tc.change(&w)
			d := Decide(limits, w.Facts, w.runtime, w.kubelet)
			if d.Runtime.State != tc.runtime || d.Kubelet.State != tc.kubelet {
				t.Errorf("the runtime is %s (%s), the kubelet %s (%s), want %s and %s", d.Runtime.State,
					d.Runtime.Reason,
					d.Kubelet.State, d.Kubelet.Reason, tc.runtime, tc.kubelet)
			}
			var acts []string
			if d.Runtime.Act != Nothing {
				acts = append(acts, "runtime: "+string(d.Runtime.Act))
			}
			if d.Kubelet.Act != Nothing {
				acts = append(acts, "kubelet: "+string(d.Kubelet.Act))
			}
			if got := strings.Join(acts, ", "); got != tc.act {
				t.Errorf("it does %q, want %q", got, tc.act)
			}
			said := d.Runtime.Reason + d.Runtime.Held + "\n" + d.Kubelet.Reason + d.Kubelet.Held
			if !strings.Contains(said, tc.reason) {
				t.Errorf("it says %q, which lacks %q", said, tc.reason)
			}
		})
	}
}
