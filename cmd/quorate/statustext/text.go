// Package statustext says how a master is: it judges what its agent says of itself, and prints that for a person.
package statustext

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/cmd/quorate/tone"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// Show prints a status for a person: first whether all is well, then what is not, then everything else.
func Show(w io.Writer, s Shown, now time.Time) {
	terminal.PaintText(w, tone.Of(s.Verdict), headline(s.Status, now))
	terminal.PrintText(w, "", clusterText(s.Status))
	if p := s.Cluster.Pause; p != nil {
		fmt.Fprintln(w)
		terminal.PrintText(w, "", pauseText(*p))
	}
	for _, b := range s.Blocked {
		fmt.Fprintln(w)
		terminal.Paint(w, tone.OfWait(b.Name), fmt.Sprintf("BLOCKED for %s: %s%s\n", terminal.Age(now, b.Since), b.Name,
			rowText(b)))
		terminal.PrintText(w, "  ", b.Reason)
		terminal.PrintText(w, "  ", "Next: "+b.Next)
	}
	if end := s.LastEnd; end != nil {
		fmt.Fprintf(w, "\nSTARTED AGAIN: the agent before this one ended %s ago with exit code %d\n",
			terminal.Age(now, end.Time), end.Code)
		terminal.PrintText(w, "  ", end.Error)
	}
	showMembers(w, s.Etcd)
	showComponents(w, s.Components, now)
	showKubelet(w, s.Kubelet, now)
	var leases []terminal.Row
	for _, l := range s.Leases {
		leases = append(leases, terminal.Row{Cells: []string{l.Name, terminal.OrNone(holder(l.Holder)),
			terminal.OrNone(l.Role), terminal.Age(now, now.Add(-seconds(l.Age))) + " ago"}})
	}
	terminal.PrintTableBelow(w, []string{"LEASE", "HOLDER", "HERE", "RENEWED"}, leases)
	if first, ok := firstToExpire(s.Certificates); ok {
		fmt.Fprintf(w, "\n%s; the first to expire is %s, %s\n",
			counted(len(s.Certificates), "certificate", "certificates"), first.Name, expiry(now, first.NotAfter))
	}
	if s.Encryption != nil {
		fmt.Fprintln(w)
		terminal.PrintText(w, "", encryptionText(s.Encryption))
	}
	if s.Snapshots != nil {
		fmt.Fprintf(w, "\n%s\n", snapshotText(s.Snapshots, now))
	}
	if s.Addons != nil {
		fmt.Fprintln(w)
		terminal.PrintText(w, "", addonsText(s.Addons))
		showAddonObjects(w, s.Addons, now)
	}
	if text := sizeText(s.Status); text != "" {
		fmt.Fprintln(w)
		terminal.PrintText(w, "", text)
	}
	if s.Archives != nil && s.Archives.Count > 0 {
		fmt.Fprintf(w, "\n%s\n", archiveText(s.Archives))
	}
	showPending(w, s.Status)
	showLosses(w, s.Status)
}

// pauseText says who holds back all changes of the membership, why, and until when.
func pauseText(p etcdmember.PauseReport) string {
	text := fmt.Sprintf("PAUSED by order %d of %s, since %s, until ", p.Order, p.By, terminal.When(p.Since))
	if p.Until != nil {
		text += terminal.When(*p.Until)
	} else {
		text += "'quorate resume'"
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// showPending says what of the instance's document is not in force.
func showPending(w io.Writer, s status.Status) {
	for i, c := range s.PendingRestart {
		if i == 0 {
			fmt.Fprintln(w, "\nThe document has changed. It counts from the agent's next start:")
		}
		fmt.Fprintf(w, "  %s\n", c)
	}
}

// showKubelet says how the watched units stand, and what happened to them last.
func showKubelet(w io.Writer, s *kubelet.Status, now time.Time) {
	if s == nil || len(s.Units) == 0 {
		return
	}
	var units []terminal.Row
	for _, u := range s.Units {
		r := terminal.Row{Cells: []string{u.Unit, string(u.State), terminal.Age(now, u.Since), strconv.Itoa(u.Ended),
			strconv.Itoa(u.Restart + u.Start + u.Park)}}
		if u.State != kubeletwatch.Running {
			r.Below = u.Reason
		}
		units = append(units, r)
	}
	terminal.PrintTableBelow(w, []string{"WATCHED UNIT", "STATE", "FOR", "ENDED", "ACTED ON"}, units)
	if n := len(s.Records); n > 0 {
		last := s.Records[n-1]
		fmt.Fprintln(w)
		terminal.PrintText(w, "", fmt.Sprintf("%s ago: %s", terminal.Age(now, last.At), last.Text()))
	}
}

// showLosses says which logs are not whole.
func showLosses(w io.Writer, s status.Status) {
	if l := s.LogLoss; l != nil {
		text := counted(l.Lines, "line of the agent's log was dropped", "lines of the agent's log were dropped")
		if l.Error != "" {
			text += "; it cannot be written: " + l.Error
		}
		fmt.Fprintln(w)
		terminal.PrintText(w, "", text)
	}
	for _, c := range s.Components {
		if c.OutputDropped > 0 {
			fmt.Fprintln(w)
			terminal.PrintText(w, "", counted(c.OutputDropped, "byte of the log of "+c.Name+" was dropped",
				"bytes of the log of "+c.Name+" were dropped")+" since the agent began: the log could not be written, "+
				"or not in time (a full or slow disk). The agent's log says when.")
		}
	}
}

// encryptionText says how the apiserver writes, and what it reads besides.
func encryptionText(e *certs.Encryption) string {
	what, keys := strings.Join(e.Resources, ", "), strings.Join(e.ReadsWith, ", ")
	if e.WritesWith == "" {
		return fmt.Sprintf("%s are written in the clear; keys for reading encrypted ones: %s", what, keys)
	}
	return fmt.Sprintf("%s are written encrypted with key %s; keys for reading: %s", what, e.WritesWith, keys)
}

// snapshotText says how old the newest snapshot is and when the next one is due.
func snapshotText(s *status.Snapshots, now time.Time) string {
	text := "no snapshot of this epoch yet"
	if s.Time != nil {
		text = fmt.Sprintf("the newest snapshot is %s, %s old", s.Newest, terminal.Age(now, *s.Time))
	}
	switch {
	case s.Saving:
		return text + "; one is being saved here"
	case s.Due.IsZero():
		return text
	case now.Before(s.Due):
		return text + "; the next is due in " + terminal.Age(s.Due, now)
	}
	return text + "; the next has been due for " + terminal.Age(now, s.Due)
}

// addonsText says how much of the add-ons' folder is in the cluster.
func addonsText(s *plan.Status) string {
	text := fmt.Sprintf("add-ons, version %s of %s: ", terminal.OrNone(string(s.Version)), s.Folder)
	switch {
	case s.Standing == "":
		text += "nothing is applied yet"
	case !s.Standing.Writes():
		text += fmt.Sprintf("nothing is written, version %s is in the cluster", s.Inventory)
	default:
		text += fmt.Sprintf("%d of %s in place, %d ready", s.InPlace, counted(s.Objects, "object", "objects"), s.Ready)
	}
	if s.Kept != "" {
		text += "; " + s.Kept
	}
	return text
}

// archiveText says what former members' directories take, and why more of them stay than always do.
func archiveText(s *status.Archives) string {
	text := fmt.Sprintf("%s %d MiB", counted(s.Count, "archived directory takes", "archived directories take"),
		s.Bytes>>20)
	if s.Kept != "" {
		text += "; " + s.Kept
	}
	return text
}

// sizeText says how large the data disk and etcd's database are, and what is left of each.
func sizeText(s status.Status) string {
	var parts []string
	if d := s.DataDisk; d != nil {
		text := fmt.Sprintf("the data disk's file system has %s, %s free", bytesText(d.FileSystem), bytesText(d.Free))
		if d.Device > 0 {
			text = fmt.Sprintf("the data disk has %s, its file system %s, %s free", bytesText(d.Device),
				bytesText(d.FileSystem), bytesText(d.Free))
		}
		if d.NotGrown() {
			text += " (it has not grown to its disk: systemctl start quorate-data-growfs)"
		}
		parts = append(parts, text)
	}
	if e := s.Etcd.Database; e != nil && e.Quota > 0 {
		parts = append(parts, fmt.Sprintf("etcd's database takes %s of its quota of %s (%d %%), %s of that in use",
			bytesText(e.Bytes), bytesText(e.Quota), 100*e.Bytes/e.Quota, bytesText(e.InUse)))
	}
	return strings.Join(parts, "; ")
}

// counted is a number of what is one thing or more.
func counted[N int | int64 | uint64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// bytesText is a number of bytes for a person.
func bytesText(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// rowText names the row of the membership's table, unless the wait has the same name. What a phase waits for by itself
// has no row.
func rowText(w replica.Wait) string {
	name, ok := rowName(w.Row)
	if !ok || name == w.Name {
		return ""
	}
	return " (row " + name + ")"
}

// rowName is the name of a row that a status has by its number; false: it is no row, but a phase of the boot.
func rowName(row string) (string, bool) {
	var r table.Row
	if err := r.UnmarshalText([]byte(row)); err != nil {
		return "", false
	}
	return r.Name(), true
}

// doing says what each phase is about, for a person who meets it in the middle of a boot.
var doing = map[agent.Phase]string{
	agent.PhasePacing:       "it was started again and again, and begins in a moment",
	agent.PhaseIdentity:     "it asks the metadata server who it is and which cluster it belongs to",
	agent.PhaseDataDisk:     "it waits until the data disk can be used",
	agent.PhaseRecord:       "it reads from the record what was ever formed",
	agent.PhaseCertificates: "it reads the bundle and issues its certificates",
	agent.PhaseEtcd:         "it takes its place in etcd",
	agent.PhaseControlPlane: "its etcd member runs, and it waits for the apiserver",
	agent.PhaseStopping:     "it hands over and stops its processes in reverse order",
}

func headline(s status.Status, now time.Time) string {
	who := "this master"
	if s.Replica.Name != "" {
		who = s.Replica.Name + " in " + s.Replica.Zone
	}
	if s.Replica.Ready {
		text := fmt.Sprintf("%s is ready, for %s", who, terminal.Age(now, s.Replica.Since))
		if _, wrong := condition(s, now); len(wrong) > 0 {
			text += ", but not well now: " + strings.Join(wrong, ", ")
		}
		return text
	}
	text := fmt.Sprintf("%s is not ready: phase %s for %s", who, terminal.OrNone(s.Replica.Phase),
		terminal.Age(now, s.Replica.Since))
	if why := s.Replica.StartsAgain; why != "" {
		return text + ", it stops its processes and starts again: " + why
	}
	if what, ok := doing[agent.Phase(s.Replica.Phase)]; ok {
		text += ", " + what
	}
	return text
}

// staleLease is twice the longest lease of any election profile: by then another should have taken it.
const staleLease = 30 * time.Second

// condition is how a replica is, and names what is wrong with it. While it boots, components that are not up yet are no
// fault.
func condition(s status.Status, now time.Time) (c health.Condition, wrong []string) {
	c.Ready = s.Replica.Ready
	other := func(text string) { c.Other, wrong = true, append(wrong, text) }
	for _, p := range s.Components {
		if p.State != supervisor.Ready && (c.Ready || p.State == supervisor.Backoff) {
			c.Down = append(c.Down, p.Name)
			wrong = append(wrong, fmt.Sprintf("%s is %s", p.Name, stateText(p.State)))
		}
	}
	if c.Ready && len(s.Etcd.Members) == 0 {
		other("its etcd member does not answer")
	}
	for _, l := range s.Leases {
		if c.Ready && seconds(l.Age) > staleLease {
			other(fmt.Sprintf("nobody renews the lease %s", l.Name))
		}
	}
	for _, b := range s.Blocked {
		if c.Waits = append(c.Waits, b.Name); health.Degrades(b.Name) {
			wrong = append(wrong, b.Name)
		}
	}
	return c, wrong
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// clusterText names the cluster and this replica's incarnation in it, as far as they are known.
func clusterText(s status.Status) string {
	var parts []string
	if s.Cluster.Name != "" {
		parts = append(parts, "cluster "+s.Cluster.Name)
	}
	if s.Cluster.Epoch > 0 {
		parts = append(parts, fmt.Sprintf("epoch %d", s.Cluster.Epoch))
	}
	if s.Cluster.ID != "" {
		parts = append(parts, "etcd cluster "+s.Cluster.ID)
	}
	if s.Replica.InstanceID != "" {
		parts = append(parts, "instance "+s.Replica.InstanceID)
	}
	if s.Replica.Incarnation > 0 {
		parts = append(parts, fmt.Sprintf("incarnation %d", s.Replica.Incarnation))
	}
	if s.Replica.DiskIDUnknown {
		parts = append(parts, "disk id unknown")
	}
	if name, ok := rowName(s.Etcd.Row); ok {
		parts = append(parts, "membership row "+name)
	}
	if name, ok := rowName(s.Etcd.LeaderRow); ok {
		parts = append(parts, "leader loop row "+name)
	}
	return strings.Join(parts, ", ")
}

func showMembers(w io.Writer, e etcdmember.EtcdReport) {
	var rows []terminal.Row
	members := slices.SortedFunc(slices.Values(e.Members),
		func(a, b etcdmember.MemberReport) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range members {
		role, lag := m.Role, "-"
		if m.Leader {
			role += ", leader"
		}
		if m.ID == e.Member {
			role += ", this one"
		}
		if !m.Started {
			role += ", not started"
		}
		if m.Lag != nil {
			lag = strconv.FormatUint(*m.Lag, 10)
		}
		rows = append(rows, terminal.Row{Cells: []string{memberPlace(m.Name), role, lag, m.ID}})
	}
	terminal.PrintTableBelow(w, []string{"ETCD MEMBER", "ROLE", "LAG", "ID"}, rows)
}

// memberPlace is a member's name without the instance id, which says nothing to a person.
func memberPlace(name string) string {
	if place, _, ok := table.ParseMemberName(name); ok {
		return place.String()
	}
	return terminal.OrNone(name)
}

// showComponents gives a reason where there is something to explain.
func showComponents(w io.Writer, list []supervisor.Status, now time.Time) {
	var rows []terminal.Row
	for _, c := range list {
		r := terminal.Row{Cells: []string{c.Name, stateText(c.State), terminal.Age(now, c.Since),
			strconv.Itoa(c.Restarts)}, Tones: map[int]terminal.Tone{1: tone.OfComponent(c.State)}}
		if c.State != supervisor.Ready {
			r.Below = c.Reason
		} else if c.Unlimited != "" {
			r.Below = c.Unlimited
		}
		rows = append(rows, r)
	}
	terminal.PrintTableBelow(w, []string{"COMPONENT", "STATE", "FOR", "RESTARTS"}, rows)
}

// stateText is a component's state for a person. JSON has the supervisor's own name of it.
func stateText(s supervisor.State) string {
	if s == supervisor.Backoff {
		return "crash-looping"
	}
	return string(s)
}

// holder is a lease's holder without the random part that makes it unique.
func holder(identity string) string {
	host, _, _ := strings.Cut(identity, "_")
	return host
}

func firstToExpire(list []certs.Expiry) (first certs.Expiry, ok bool) {
	for i, c := range list {
		if i == 0 || c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	return first, len(list) > 0
}

func expiry(now, notAfter time.Time) string {
	if left := notAfter.Sub(now); left > 0 {
		return fmt.Sprintf("on %s, in %s", notAfter.UTC().Format(time.DateOnly),
			counted(int(left.Hours()/24), "day", "days"))
	}
	return fmt.Sprintf("which expired on %s", notAfter.UTC().Format(time.DateOnly))
}

// Shown is the agent's status, what is to be said of it, and why the agent before it ended.
type Shown struct {
	// Verdict is how this master is, in a word; NotWell says why it is not well, and is empty while it is.
	Verdict health.State `json:"verdict"`
	NotWell []string     `json:"notWell"`
	status.Status
	LastEnd *master.LastEnd `json:"lastEnd,omitempty"`
}

// Judge adds the verdict to a status.
func Judge(s status.Status, now time.Time) Shown {
	c, why := condition(s, now)
	if !s.Replica.Ready {
		why = append([]string{"its boot is not done: phase " + terminal.OrNone(s.Replica.Phase)}, why...)
	}
	return Shown{Verdict: c.State(), NotWell: append([]string{}, why...), Status: s}
}

// mostAddons is how many objects a status shows; the JSON has all.
const mostAddons = 10

// showAddonObjects lists the objects of the add-ons of which there is something to say, each with its reason.
func showAddonObjects(w io.Writer, s *plan.Status, now time.Time) {
	var rows []terminal.Row
	for _, group := range []struct {
		state   string
		objects []plan.ObjectStatus
	}{{"failing", s.Failing}, {"contested", s.Contested}, {"not ready", s.NotReady}} {
		for _, o := range group.objects {
			rows = append(rows, terminal.Row{Cells: []string{o.Object, group.state, terminal.Age(now, o.Since),
				terminal.OrNone(o.Source)}, Below: o.Reason})
		}
	}
	more := len(rows) - mostAddons
	terminal.PrintTableBelow(w, []string{"ADD-ON", "STATE", "FOR", "FILE"}, rows[:min(len(rows), mostAddons)])
	if more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
}
