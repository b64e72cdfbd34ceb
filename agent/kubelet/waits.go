package kubelet

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// The waits of the watch. What a person has chosen, such as a masked unit, is none.
const (
	runtimeHung       = "runtime-hung"
	runtimeUnkillable = "runtime-unkillable"
	runtimeCrashLoop  = "runtime-crash-loop"
	runtimeNotWatched = "runtime-not-watched"
	kubeletHung       = "kubelet-hung"
	kubeletUnkillable = "kubelet-unkillable"
	kubeletCrashLoop  = "kubelet-crash-loop"
	kubeletNoNetwork  = "kubelet-no-network"
	kubeletPort       = "kubelet-port-blocked"
	unitsUnreadable   = "units-unreadable"
)

// waitRow is the phase that these waits are told in: the watch is the same in all of them.
const waitRow = "keep"

const (
	// networkPatience is how long a Node may be without its network: a new one is given its range of addresses within
	// seconds.
	networkPatience = 2 * time.Minute
	// unreadPatience is how long systemd may not answer: its bus may be started again.
	unreadPatience = 20 * time.Second
)

// hold tells what the two units wait for.
func (w *Watch) hold() {
	now := time.Now()
	for u, source := range map[*watched]*waits.Source{w.runtime: w.cfg.RuntimeWaits, w.kubelet: w.cfg.KubeletWaits} {
		source.Only(waitOf(u, u == w.kubelet), now)
	}
}

// waitOf is what a unit waits for; nil: nothing.
func waitOf(u *watched, kubelet bool) *replica.Wait {
	blocked := func(name, next string, patience time.Duration) *replica.Wait {
		reason := fmt.Sprintf("%s: %s", u.name, u.verdict.Reason)
		if u.verdict.Held != "" {
			reason += "; " + u.verdict.Held
		}
		return &replica.Wait{Row: waitRow, Name: name, Reason: reason, Next: next, Patience: patience}
	}
	switch u.verdict.State {
	case kubeletwatch.Hung, kubeletwatch.HungAtStart, kubeletwatch.Failed:
		if kubelet {
			return blocked(kubeletHung, hungNext(u), 0)
		}
		return blocked(runtimeHung, hungNext(u), 0)
	case kubeletwatch.Unkillable:
		if kubelet {
			return blocked(kubeletUnkillable, unkillableNext, 0)
		}
		return blocked(runtimeUnkillable, unkillableNext, 0)
	case kubeletwatch.CrashLoop:
		next := fmt.Sprintf("Read `journalctl -u %s` for why it ends, and repair that. systemd starts it again by "+
			"itself; another restart would change nothing.", u.name)
		if kubelet {
			return blocked(kubeletCrashLoop, next, 0)
		}
		return blocked(runtimeCrashLoop, next, 0)
	case kubeletwatch.Unsafe, kubeletwatch.Unreached:
		return blocked(runtimeNotWatched, "Put KillMode=process into the runtime's unit, and the right socket into "+
			"kubelet.runtimeSocket of the document. Until then the agent leaves it alone.", 0)
	case kubeletwatch.NoNetwork:
		return blocked(kubeletNoNetwork, "Bring the network plugin and its file in /etc/cni/net.d. Nothing is restarted "+
			"for it.", networkPatience)
	case kubeletwatch.PortBlocked:
		return blocked(kubeletPort, "Find out what keeps loopback from the port, such as a packet filter. Nothing is "+
			"restarted for it.", 0)
	case kubeletwatch.Unknown:
		return blocked(unitsUnreadable, fmt.Sprintf("Read `systemctl status %s`, and `systemctl status dbus` where "+
			"systemd does not answer. Until then it is not watched.", u.name), unreadPatience)
	}
	return nil
}

const unkillableNext = "Reboot this VM. Until the process has gone, systemd does not start another; then the agent " +
	"has it started by itself."

func hungNext(u *watched) string {
	if !u.verdict.Spent {
		if u.verdict.State == kubeletwatch.Failed {
			return "The agent starts it by itself."
		}
		return "The agent restarts it by itself."
	}
	return fmt.Sprintf("Restarts do not help. Read `journalctl -u %s` for the cause; after `systemctl restart %s` the "+
		"agent watches on.", u.name, u.name)
}
