package health

import (
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// remedy are commands to paste for a finding. Where none is right without a person's judgement, they show more.
func (j *judgement) remedy(name string, about []replica.Place) []string {
	out := []string{}
	each := func(command func(replica.Place) string) []string {
		for _, p := range about {
			out = append(out, command(p))
		}
		return out
	}
	c := j.commands
	switch name {
	case VMMissing:
		return each(c.RecreateVM)
	case VMNotRunning, ReplicaIsStopped:
		return each(c.StartVM)
	case ReplicaNotHeard:
		return each(j.revive)
	case Paused, "paused":
		return []string{c.Quorate("quorate resume")}
	case "left", "leave-last-voter", "leave-needs-quorum", "drains-first":
		return []string{c.Quorate("quorate orders")}
	case "record-lost", "record-rolled-back", "record-unreadable", RecordUnreadHere, "bundle-unreadable":
		return []string{c.Quorate("quorate record check")}
	case VMsUnreadHere:
		return []string{c.Quorate("quorate gce check")}
	case "restore-offered", "survivors-not-enough", "survivor-waits-for-disk", "restore-unfit", "source-gone",
		"restore-waits":
		return []string{c.Quorate("quorate restore")}
	case "snapshot-overdue", "snapshot-first":
		return []string{c.Quorate("quorate snapshot list")}
	case ReplicaIsBooting, NoReports, NoLeader, ReplicasMissing, EndpointNotReady, EndpointSilent:
		return j.away()
	}
	return each(func(p replica.Place) string { return c.On(p, "quorate status") })
}

// revive starts a VM that is off, and shoots one that hangs. Without the Compute API's list nobody knows which.
func (j *judgement) revive(p replica.Place) string {
	running := slices.ContainsFunc(j.VMs, func(v replica.VM) bool { return v.Place == p && v.Status == "RUNNING" })
	if running {
		return j.commands.ResetVM(p)
	}
	return j.commands.StartVM(p)
}

// away starts the voters that are away.
func (j *judgement) away() []string {
	out := []string{}
	for _, r := range j.replicas {
		if r.State == ReplicaUnheard || r.State == ReplicaStopped {
			out = append(out, j.revive(r.Place))
		}
	}
	return out
}
