package restoring

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/record"
)

// ShowChoice says what there is, what was chosen, and what it costs; stops: that VMs will be stopped for it.
func ShowChoice(out io.Writer, r order.Restore, c order.Choice, stops bool) {
	showSources(out, r)
	what, loses := choiceText(r, c)
	terminal.PrintText(out, "", fmt.Sprintf("Epoch %d ends, and the next begins from %s. %s", r.Ends.Number, what,
		loses))
	names := notStoppedNames(r, r.NotStopped(c.Order.Replica))
	if len(names) == 0 {
		return
	}
	terminal.PrintText(out, "",
		fmt.Sprintf("These have not said that they have stopped: %s. The agents wait until each "+
			"has, or is proven silent: its VM is gone or stopped, and it has written no heartbeat for two minutes.",
			strings.Join(names, ", ")))
	if stops {
		terminal.PrintText(out, "",
			fmt.Sprintf("Those of them that have not said so %s after %s has accepted the order "+
				"are stopped through the Compute API.", order.StopAfter, c.Order.Replica))
		return
	}
	terminal.PrintText(out, "", "To have those that cannot be reached stopped through the Compute API add --stop-vms; "+
		"or stop them by hand: gcloud compute instances stop NAME --zone ZONE.")
}

// showSources lists what a restore can be made of.
func showSources(out io.Writer, r order.Restore) {
	var rows []terminal.Row
	var former []string
	for _, c := range r.Candidates() {
		reach := "unknown"
		if _, index := c.Reaches(); index > 0 {
			reach = fmt.Sprintf("index %d", index)
			if !c.Whole() {
				reach += " or more"
			}
		}
		rows = append(rows, terminal.Row{Cells: []string{"directory=" + c.Place.String(), string(c.State()), reach,
			terminal.When(c.Incarnation.Time)}})
		if c.Emptied != nil {
			former = append(former, c.Place.String())
		}
	}
	for _, s := range r.Snapshots[max(0, len(r.Snapshots)-3):] {
		rows = append(rows, terminal.Row{Cells: []string{"snapshot=" + s.Name, "verified when saved",
			fmt.Sprintf("index %d", s.Index), terminal.When(s.Time)}})
	}
	terminal.PrintTableBelow(out, []string{"SOURCE", "STATE", "REACHES", "SINCE"}, rows)
	if len(former) > 0 {
		terminal.PrintText(out, "",
			fmt.Sprintf("The former disks of these may come back, and hold more than any snapshot: %s.",
				strings.Join(former, ", ")))
	}
}

// choiceText names the source, and says what will be lost, as sentences.
func choiceText(r order.Restore, c order.Choice) (what, loses string) {
	if c.Snapshot != nil {
		return fmt.Sprintf("snapshot %s, on %s", c.Snapshot.Name, c.Order.Replica), snapshotLoses(r, *c.Snapshot)
	}
	d := c.Directory
	return fmt.Sprintf("the directory of %s (member %s)", d.Place, d.Incarnation.Started.MemberID),
		directoryLoses(r, *d)
}

// directoryLoses compares how far a log reaches with how far the cluster was known to be.
func directoryLoses(r order.Restore, c order.Candidate) string {
	term, index := c.Reaches()
	reach := fmt.Sprintf("Its log ends at term %d, index %d.", term, index)
	switch {
	case index == 0:
		return "How far its log reaches is not known before it has stopped: it left no mark."
	case !c.Whole():
		reach = fmt.Sprintf("It has not stopped yet; its log ends at or beyond term %d, index %d, its own last mark.",
			term, index)
	}
	last, ok := r.FurthestMark()
	switch {
	case !ok:
		return reach + " No mark says how far the others were."
	case last.Applied <= index:
		return fmt.Sprintf("%s The cluster was last known to be at index %d (%s), so nothing up to there is lost. "+
			"Later writes that only the other replicas have may be lost.", reach, last.Applied,
			terminal.When(last.Time))
	case !c.Whole():
		return fmt.Sprintf("%s The cluster was last known to be at index %d (%s): up to %s may be lost.", reach,
			last.Applied, terminal.When(last.Time), entries(last.Applied-index))
	}
	return fmt.Sprintf("%s The cluster was last known to be at index %d (%s): at least %s will be LOST.", reach,
		last.Applied, terminal.When(last.Time), entries(last.Applied-index))
}

// entries counts entries of etcd's log. Each is about one write.
func entries(n uint64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func snapshotLoses(r order.Restore, s record.Snapshot) string {
	text := fmt.Sprintf("Everything written after %s (revision %d) will be LOST.", terminal.When(s.Time), s.Revision)
	if m, ok := r.FurthestMark(); ok && m.Time.After(s.Time) {
		text += fmt.Sprintf(" The cluster was last heard of at %s, %s later", terminal.When(m.Time),
			terminal.Age(m.Time, s.Time))
		if s.Epoch == r.Ends.Number && m.Applied > s.Index {
			text += " and about " + entries(m.Applied-s.Index) + " further"
		}
		text += "."
	}
	if s.Epoch != r.Ends.Number {
		text += fmt.Sprintf(" It is of epoch %d: all of epoch %d is lost too.", s.Epoch, r.Ends.Number)
	}
	return text
}

// notStoppedNames names those that have not stopped. Of the instances that a place has had, the newest is named and
// the earlier ones, most of which were deleted long ago, are counted.
func notStoppedNames(r order.Restore, list []record.Incarnation) (out []string) {
	earlier := 0
	for _, i := range list {
		if r.IsNewest(i) {
			out = append(out, order.InstanceText(i))
		} else {
			earlier++
		}
	}
	switch {
	case earlier == 1:
		out = append(out, "1 earlier VM of these places")
	case earlier > 1:
		out = append(out, fmt.Sprintf("%d earlier VMs of these places", earlier))
	}
	return out
}

// progressText says where the end of an epoch and the beginning of the next stand; nothing where no order wants them
// any more. detail is what changes while the text does not.
func progressText(r order.Restore, p order.Progress) (text, detail string) {
	o := p.Order
	switch p.Stage {
	case order.StageFormed:
		return fmt.Sprintf("Epoch %d is formed: etcd cluster %s. The other replicas join it by themselves.",
			p.Next.Number, p.Next.Outcome.Formed.ClusterID), ""
	case order.StageBuilding:
		return fmt.Sprintf("%s builds the directory of epoch %d.", p.Next.Claim.Seeder.Place, p.Next.Number), ""
	case order.StageWithdrawing:
		return fmt.Sprintf("Order %d is being withdrawn by order %d: the agents settle whether it was in time.",
			o.Number, p.By), ""
	case order.StageEnded:
		return fmt.Sprintf("Epoch %d has ended. %s claims the next.", r.Ends.Number, o.Restore.Replica), ""
	case order.StageClosing:
		return fmt.Sprintf("Order %d: %s ends the epoch. It cannot be withdrawn any more.", o.Number,
			o.Restore.Replica), ""
	case order.StageOrdered:
		return fmt.Sprintf("Order %d: %s checks first whether it can carry it out; nobody stops before that. If this "+
			"stays, its agent does not run or its status says why.", o.Number, o.Restore.Replica), ""
	case order.StageWaiting:
		return waitingText(r, p)
	}
	return "", ""
}

func waitingText(r order.Restore, p order.Progress) (text, detail string) {
	names := notStoppedNames(r, p.NotStopped)
	if len(names) == 0 {
		return fmt.Sprintf("Order %d: everybody says that they have stopped. %s ends the epoch.", p.Order.Number,
			p.Order.Restore.Replica), ""
	}
	return fmt.Sprintf("Order %d: %s waits until each of these has said that it has stopped, or is proven silent: "+
		"%s.", p.Order.Number, p.Order.Restore.Replica, strings.Join(names, ", ")), heartbeats(r, p)
}

// heartbeats says when each of those that are waited for last wrote a mark, and who knows what is awaited: the lists
// of VMs and disks, which are witnesses too, are not in the record.
func heartbeats(r order.Restore, p order.Progress) string {
	var texts []string
	for _, i := range p.NotStopped {
		if !r.IsNewest(i) {
			continue
		}
		text := "none in the record"
		if i.Started != nil {
			if m, ok := r.Record.Marks[i.Started.MemberID]; ok && m.Epoch == r.Ends.Number {
				text = terminal.Age(r.Now, cmp.Or(m.Written, m.Beat, m.Time)) + " ago"
			}
		}
		if r.VMStopped(i) {
			text += " (its VM is stopped)"
		}
		texts = append(texts, fmt.Sprintf("%s %s", i.Place, text))
	}
	if len(texts) > 0 {
		texts = []string{"Last heartbeats, by the store's clock: " + strings.Join(texts, ", ") + "."}
	}
	return strings.Join(append(texts, fmt.Sprintf("'quorate status' on %s says what it still waits for, and how "+
		"long.", p.Order.Restore.Replica)), " ")
}
