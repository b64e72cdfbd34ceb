package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// expiresSoon is how long a certificate may be valid yet before that is a finding. They are renewed a month before.
const expiresSoon = 7 * 24 * time.Hour

// find lists all findings, each by itself.
func (j *judgement) find() []Finding {
	return slices.Concat(j.findOrders(), j.findUnread(), j.findReplicas(), j.findWaits(), j.findCertificates(),
		j.findQuorum(), j.findEndpoint())
}

func (j *judgement) finding(name, next, what string, about ...replica.Place) Finding {
	return Finding{Name: name, Level: entryOf(name).level, Replicas: replica.PlaceNames(about), What: what, Next: next,
		Remedy: j.remedy(name, about), Runbook: runbook + "#" + name, Consequences: []Finding{}}
}

// runbook is where the findings' entries are.
const runbook = "docs/runbook.md"

func (j *judgement) findOrders() (out []Finding) {
	for _, o := range j.Orders {
		if o.Kind != "pause" {
			continue
		}
		until := "until it is resumed"
		if o.Until != nil {
			until = "until " + o.Until.UTC().Format("2006-01-02 15:04 UTC")
		}
		why := ""
		if o.Reason != "" {
			why = fmt.Sprintf(" (%s)", o.Reason)
		}
		out = append(out, j.finding(Paused, "What it holds back goes on when the pause ends.",
			fmt.Sprintf("Order %d, given by %s%s, pauses all changes of the membership %s.", o.Number, o.By, why,
				until)))
	}
	return out
}

func (j *judgement) findUnread() (out []Finding) {
	switch {
	case j.NoBucket:
		f := j.finding(RecordUnreadHere, "The bucket does not exist. Correct record.url of the document, or --record. "+
			"Where it was deleted, masters that run go on without it.", "The reports cannot be read from here: "+j.Unread)
		f.Remedy = []string{} // what asks the bucket says no more
		out = append(out, f)
	case j.Unread != "":
		out = append(out, j.finding(RecordUnreadHere, "Sign in (`gcloud auth application-default login`) and "+
			"check the right to list and read the bucket. The replicas may be well.",
			"The reports cannot be read from here: "+j.Unread))
	case j.UnreadRecord != "":
		out = append(out, j.finding(RecordUnreadHere, "Check that you may read the record. Orders in force are not "+
			"shown.",
			"The record cannot be read from here: "+j.UnreadRecord))
	}
	if j.UnreadVMs != "" {
		out = append(out, j.finding(VMsUnreadHere, "Sign in (`gcloud auth application-default login`), check the "+
			"right to list VMs, or leave --compute out.", "The VMs cannot be listed from here: "+j.UnreadVMs))
	}
	if j.Unread == "" && len(j.Reports) == 0 {
		out = append(out, j.finding(NoReports, "Agents report within seconds of their start. Is this the right "+
			"bucket, do the masters run, and may they write below the reports' folder (docs/iam.md)?",
			"No replica has ever written a report."))
	}
	return out
}

// findReplicas says of each replica that is not as it should be what was noticed from outside.
func (j *judgement) findReplicas() (out []Finding) {
	for _, r := range j.replicas {
		out = append(out, j.findVM(r)...)
		name, next, what := j.describe(r)
		if name != "" {
			out = append(out, j.finding(name, next, what, r.Place))
		}
		switch {
		case !r.speaks() || r.State != ReplicaUnwell || len(r.Down) == 0:
		case etcdEnded(r.seen.Report):
			out = append(out, j.finding(EtcdEnded, "Its log has what it said last. Most often it is started again by "+
				"itself.", componentText(*r.seen, "etcd"), r.Place))
		default:
			what = componentText(*r.seen, r.Down[0])
			out = append(out, j.finding(ComponentDown, "It is started again by itself.", what, r.Place))
		}
	}
	if n := j.Wanted - len(j.replicas); n > 0 && len(j.Reports) > 0 {
		out = append(out, j.finding(ReplicasMissing, "Make the VMs that are missing; each joins by itself.",
			fmt.Sprintf("%d replicas are wanted, and %d are known.", j.Wanted, len(j.replicas))))
	}
	return out
}

// findVM compares a replica with the Compute API's list.
func (j *judgement) findVM(r Replica) []Finding {
	if j.VMs == nil {
		return nil
	}
	at := slices.IndexFunc(j.VMs, func(v replica.VM) bool { return v.Place == r.Place })
	switch {
	case at < 0 && !r.speaks():
		return []Finding{j.finding(VMMissing, "Make a VM of that name in that zone, with its data disk if there is "+
			"one. It joins by itself.", "The Compute API lists no VM in this place.", r.Place)}
	case at >= 0 && j.VMs[at].Status != "RUNNING" && !r.speaks():
		return []Finding{j.finding(VMNotRunning, "Start it. It comes back by itself.",
			fmt.Sprintf("The Compute API says that the VM is %s.", j.VMs[at].Status), r.Place)}
	}
	return nil
}

func (j *judgement) describe(r Replica) (name, next, what string) {
	switch r.State {
	case ReplicaUnheard:
		what = fmt.Sprintf("Its last report is %s old", ageText(r.seen.Age))
		if j.authority >= 0 && r.seen.Age <= SilentAfter {
			what += ", and etcd's leader hears nothing of its member"
		}
		return ReplicaNotHeard,
			"Start its VM, or shoot it if it hangs, or recreate it under its name. It comes back by " +
				"itself.", what + ": the VM is off, hangs, or has no network."
	case ReplicaStopped:
		what = fmt.Sprintf("It was stopped in order, %s ago.", ageText(r.seen.Age))
		for _, c := range r.seen.Components {
			if c.State == "parked" {
				what = fmt.Sprintf("It was asked to stop, %s ago, and could not stop %s.", ageText(r.seen.Age), c.Name)
			}
		}
		return ReplicaIsStopped, "Start its VM, or wait if somebody works on it.", what
	case ReplicaCutOff:
		return ReplicaIsCutOff, "Check the network and the firewall between the masters (TCP 2379 and 2380).",
			"It runs and reports, and etcd's leader and it do not hear of each other."
	case ReplicaBoots:
		if why := r.seen.StartsAgain; why != "" {
			return ReplicaIsBooting, "It goes on by itself.", "It stops its processes and starts again: " + why
		}
		return ReplicaIsBooting, "It goes on by itself.",
			fmt.Sprintf("It boots: phase %s for %s.", r.Phase, ageText(r.seen.At.Sub(r.seen.Since)))
	case ReplicaUnknown:
		what = "It is a member of etcd, and has never written a report."
		if r.seen != nil {
			what = fmt.Sprintf("Its last report is %s old, and etcd's leader hears of its member: it runs, and cannot "+
				"write to the bucket.", ageText(r.seen.Age))
		}
		return ReplicaHasNoReport, "May its service account write below the reports' folder (docs/iam.md)? Does its " +
			"agent run?", what
	}
	return "", "", ""
}

// componentText says how a component is, in a sentence.
func componentText(s report.Sighting, name string) string {
	for _, c := range s.Components {
		if c.Name == name {
			text := fmt.Sprintf("%s is %s", c.Name, c.StateText())
			switch {
			case c.Restarts == 1:
				text += ", started again once"
			case c.Restarts > 1:
				text += fmt.Sprintf(", started again %d times", c.Restarts)
			}
			if c.Reason != "" {
				text += ": " + c.Reason
			}
			return text + "."
		}
	}
	return ""
}

// sharedWait is a wait that one replica or several have.
type sharedWait struct {
	replica.Wait // the first one's
	about        []replica.Place
	reasons      []string // of each place
}

// findWaits gathers what the replicas wait for; a wait that several have is one finding.
func (j *judgement) findWaits() (out []Finding) {
	var list []sharedWait
	for _, r := range j.replicas {
		if !r.speaks() {
			continue
		}
		for _, w := range r.seen.Waits {
			at := slices.IndexFunc(list, func(s sharedWait) bool { return s.Name == w.Name })
			if at < 0 {
				at, list = len(list), append(list, sharedWait{Wait: w})
			}
			list[at].about = append(list[at].about, r.Place)
			list[at].reasons = append(list[at].reasons, w.Reason)
		}
	}
	for _, s := range list {
		out = append(out, j.finding(s.Name, s.Next, s.what(), s.about...))
	}
	return out
}

// what is the reason, or where they differ that of each replica.
func (s sharedWait) what() string {
	if !slices.ContainsFunc(s.reasons, func(reason string) bool { return reason != s.Reason }) {
		return s.Reason
	}
	var parts []string
	for n, reason := range s.reasons {
		parts = append(parts, s.about[n].Name+": "+strings.TrimSuffix(reason, ".")+".")
	}
	return strings.Join(parts, " ")
}

func (j *judgement) findCertificates() (out []Finding) {
	for _, r := range j.replicas {
		if !r.speaks() || r.seen.Certificate == nil {
			continue
		}
		c := r.seen.Certificate
		if left := c.NotAfter.Sub(j.Now); left < expiresSoon {
			text := fmt.Sprintf("Its certificate %s expires in %s.", c.Name, ageText(left))
			if left <= 0 {
				text = fmt.Sprintf("Its certificate %s has expired %s ago.", c.Name, ageText(-left))
			}
			out = append(out, j.finding(CertificateExpires, "It is renewed by itself as soon as that is possible.",
				text,
				r.Place))
		}
	}
	return out
}

func (j *judgement) findQuorum() []Finding {
	if !j.voters.Known || j.voters.Survives >= 0 || j.forms() {
		return nil
	}
	return []Finding{j.finding(NoLeader, "Start the voters that are away with their disks. As soon as a majority "+
		"runs, the cluster serves again, and nothing is lost.",
		fmt.Sprintf("%d of %d voters take part, which is no quorum.", j.voters.Well, j.voters.Count))}
}

// forms: a cluster of several is being made, or restored, and its first member is about to lead. That nobody is served
// says the endpoint.
func (j *judgement) forms() bool {
	return j.voters.Count == 1 && j.Wanted > 1 && slices.ContainsFunc(j.replicas, func(r Replica) bool {
		return r.Role == "voter" && r.State == ReplicaBoots && r.seen.StartsAgain == "" && len(r.Waits) == 0
	})
}

func (j *judgement) findEndpoint() []Finding {
	e := j.Endpoint
	switch {
	case e == nil || e.Serves():
		return nil
	case e.Code != 0:
		return []Finding{j.finding(EndpointNotReady,
			"Repair the cause that is named with it. Without one: `quorate status` on each master.",
			fmt.Sprintf("The endpoint %s answers /readyz with HTTP %d.", e.Address, e.Code))}
	}
	next := "Start a master; the load balancer takes clients to those that are ready."
	if slices.ContainsFunc(j.replicas, Replica.serves) {
		next = "Replicas say that their apiserver is ready: check the load balancer, the firewall, and the way " +
			"from here."
	}
	return []Finding{j.finding(EndpointSilent, next, fmt.Sprintf("The endpoint %s does not answer: %s.", e.Address,
		e.Error))}
}

// ageText spells a duration for a sentence.
func ageText(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
