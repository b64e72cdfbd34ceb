package rivals

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// fault is one that befalls a kubelet or its runtime.
type fault struct {
	Name string
	// begin breaks it; end takes away what is left of that. Both are of the VM's shell.
	begin, end string
	// after is what is done a while after begin, and when; empty: nothing.
	after   string
	afterAt time.Duration
	// limit is how long a rival has.
	limit time.Duration
	// heals: a rival has to make it well again. Otherwise it has to leave it alone for the whole limit.
	heals bool
	// kubelet and runtime are how many starts of each unit are right; more are wrong.
	kubelet, runtime int
	// counted: what a rival said while it was begun counts. A fault that a person's restart begins is one afterwards.
	counted bool
}

// The faults' names.
const (
	KubeletKilled  = "kubelet killed"
	KubeletStopped = "kubelet SIGSTOPped"
	KubeletNoFiles = "kubelet out of descriptors"
	RuntimeKilled  = "containerd killed"
	RuntimeHangs   = "containerd hung"
	PortBlocked    = "health port blocked"
	NetworkGone    = "CNI configuration gone"
	StartsSlowly   = "kubelet takes 3 min to start"
	StartHangs     = "kubelet hung at start"
	Unkillable     = "kubelet in D state"
)

const (
	// patience is for what the slowest rival finds in its next cycle: 120 s, and what it does then.
	patience = 150 * time.Second
	// startPatience is for a start-up, which may take five minutes.
	startPatience = 345 * time.Second
	// oneCycle is how long the slowest rival needs to do what is wrong.
	oneCycle = 130 * time.Second
	// slowStart is a start-up that is long and ends.
	slowStart = 3 * time.Minute
)

// hold makes the next start-up hang after its first pings: it reads the machine's id from a pipe to which nobody
// writes.
const hold = `test -p /run/pipe || mkfifo /run/pipe
mkdir -p /run/systemd/system/kubelet.service.d
printf '[Service]\nBindPaths=/run/pipe:/etc/machine-id\n' > /run/systemd/system/kubelet.service.d/zz-fault.conf
systemctl daemon-reload && systemctl restart kubelet
rm /run/systemd/system/kubelet.service.d/zz-fault.conf && systemctl daemon-reload`

// letGo writes to that pipe as long as somebody reads: the id is read more than once.
const letGo = `timeout 10 sh -c 'while :; do echo 0123456789abcdef0123456789abcdef > /run/pipe; sleep 0.1; done' || true`

// lanes are the faults of each VM, in their order. What a rival needs minutes for is in a lane of its own.
var lanes = [][]fault{{
	{Name: KubeletKilled, begin: "systemctl kill -s KILL --kill-who=main kubelet", limit: patience, heals: true,
		kubelet: 1, counted: true},
	{Name: KubeletStopped, begin: "kill -STOP $(systemctl show -P MainPID kubelet)", limit: patience, heals: true,
		kubelet: 1, counted: true},
	{Name: KubeletNoFiles, begin: "prlimit --nofile=4 --pid $(systemctl show -P MainPID kubelet)", limit: patience,
		heals: true, kubelet: 1, counted: true},
}, {
	{Name: RuntimeHangs, begin: "kill -STOP $(systemctl show -P MainPID containerd)", limit: patience, heals: true,
		runtime: 1, counted: true},
	{Name: RuntimeKilled, begin: "systemctl kill -s KILL --kill-who=main containerd", limit: patience, heals: true,
		runtime: 1, counted: true},
	{Name: PortBlocked, begin: "nft add table inet blocked && nft add chain inet blocked in " +
		"'{ type filter hook input priority 0; }' && nft add rule inet blocked in tcp dport 10248 drop",
		end: "nft delete table inet blocked", limit: oneCycle, counted: true},
	{Name: NetworkGone, begin: "mkdir -p /run/cni && mv /etc/cni/net.d/* /run/cni/", end: "mv /run/cni/* /etc/cni/net.d/",
		limit: oneCycle, counted: true},
}, {
	{Name: StartHangs, begin: hold, limit: startPatience, heals: true, kubelet: 1},
	{Name: StartsSlowly, begin: hold, after: letGo, afterAt: slowStart, end: letGo, limit: slowStart + 20*time.Second},
	{Name: Unkillable, begin: "mkdir -p /sys/fs/cgroup/freezer/held && cd /sys/fs/cgroup/freezer/held && " +
		"systemctl show -P MainPID kubelet > cgroup.procs && echo FROZEN > freezer.state",
		end: "echo THAWED > /sys/fs/cgroup/freezer/held/freezer.state", limit: patience, counted: true},
}}

// Faults are the names in the tables' order.
func Faults() (names []string) {
	for _, lane := range lanes {
		for _, f := range lane {
			names = append(names, f.Name)
		}
	}
	return names
}

// Heals says that a fault has to be made good, and not only left alone.
func Heals(name string) bool {
	for _, lane := range lanes {
		for _, f := range lane {
			if f.Name == name {
				return f.heals
			}
		}
	}
	return false
}

// Outcome is one fault under one rival. Times are seconds from the fault.
type Outcome struct {
	Rival string `json:"rival"`
	Fault string `json:"fault"`
	// Seen is when the rival first said something of it, Well when all answered again; 0: not within the limit.
	Seen float64 `json:"seen"`
	Well float64 `json:"well"`
	// Limit is how long it was waited for.
	Limit float64 `json:"limit"`
	// Wrong are the starts that were not right, Lost the containers that ended.
	Wrong int `json:"wrong"`
	Lost  int `json:"lost"`
	// Load is the machine's when it began: how many processes wanted a core.
	Load string `json:"load"`
}

// suffer begins a fault and says what became of it.
func (v *vm) suffer(ctx context.Context, f fault, load string) (Outcome, error) {
	out := Outcome{Rival: v.rival.name, Fault: f.Name, Limit: f.limit.Seconds(), Load: load}
	before, err := v.containers(ctx)
	if err != nil {
		return out, err
	}
	began := time.Now()
	if err := v.run(ctx, f.begin); err != nil {
		return out, fmt.Errorf("begin %q: %w", f.Name, err)
	}
	if !f.counted {
		began = time.Now()
	}
	if err := v.sitOut(ctx, f, began, &out); err != nil {
		return out, err
	}
	out.Wrong = max(0, v.starts("kubelet", began)-f.kubelet) + max(0, v.starts("containerd", began)-f.runtime)
	words, err := v.words(ctx, v, began)
	if err != nil {
		return out, err
	}
	for _, at := range words {
		if seen := at.Sub(began).Seconds(); out.Seen == 0 || seen < out.Seen {
			out.Seen = seen
		}
	}
	after, err := v.containers(ctx)
	for _, pid := range before {
		if !strings.Contains(" "+strings.Join(after, " ")+" ", " "+pid+" ") {
			out.Lost++
		}
	}
	return out, err
}

// sitOut waits until the rival has made it well, or for the whole limit.
func (v *vm) sitOut(ctx context.Context, f fault, began time.Time, out *Outcome) error {
	ill := false
	for done := false; time.Since(began) < f.limit; {
		if err := pause(ctx, observePeriod); err != nil {
			return err
		}
		if f.after != "" && !done && time.Since(began) > f.afterAt {
			done = true
			if err := v.run(ctx, f.after); err != nil {
				return err
			}
		}
		// A restart of a process that still has to be read as hung is no recovery: it has to be seen ill first.
		ill = ill || v.ill(began)
		if f.heals && ill && v.well(began) {
			out.Well = time.Since(began).Seconds()
			return nil
		}
	}
	return nil
}

// repair takes away what a fault has left, and starts by hand what the rival did not.
func (v *vm) repair(ctx context.Context, f fault) error {
	if f.end != "" {
		if err := v.run(ctx, f.end); err != nil {
			return fmt.Errorf("end %q: %w", f.Name, err)
		}
	}
	if v.wellWithin(ctx, 20*time.Second) {
		return nil
	}
	const byHand = `systemctl reset-failed kubelet containerd
		kill -CONT $(systemctl show -P MainPID containerd) $(systemctl show -P MainPID kubelet) 2>/dev/null || true
		systemctl restart containerd kubelet`
	if err := v.run(ctx, byHand); err != nil {
		return err
	}
	if !v.wellWithin(ctx, commandLimit) {
		return fmt.Errorf("under %s, nothing is well after %q and a restart by hand", v.rival.name, f.Name)
	}
	return nil
}

// wellWithin waits until all is well.
func (v *vm) wellWithin(ctx context.Context, limit time.Duration) bool {
	for since := time.Now(); time.Since(since) < limit; {
		if v.well(since) {
			return true
		}
		if pause(ctx, observePeriod) != nil {
			return false
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
