package table

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// UnprovenStop is an instance that could still serve the epoch that is to end, and what shows, or does not yet exclude,
// that it does.
type UnprovenStop struct {
	// Place and InstanceID are whom it is about. Of a member that no incarnation in the record names, Place is zero and
	// InstanceID is the member's id.
	Place      replica.Place
	InstanceID string
	// Witness says what speaks for it, as the end of a sentence, and what is waited for.
	Witness string
}

// String names the instance and the witness for a person.
func (u UnprovenStop) String() string {
	if u.Place == (replica.Place{}) {
		return fmt.Sprintf("member %s: %s", u.InstanceID, u.Witness)
	}
	return fmt.Sprintf("%s (instance %s): %s", u.Place, u.InstanceID, u.Witness)
}

// BeatKey names who wrote a mark.
type BeatKey struct {
	MemberID record.MemberID
	BootID   string
}

// Beat is the newest mark of a member and a boot: Written is when the store wrote it, by the store's clock; Seen is
// when this agent first observed it, by its own. The two clocks are never compared.
type Beat struct{ Written, Seen time.Time }

// RunKind is what all lists of a run say of an instance.
type RunKind string

// The kinds of run.
const (
	RunAbsent  RunKind = "absent"
	RunStopped RunKind = "stopped"
)

// Run is an unbroken run of lists that say the same of an instance.
type Run struct {
	Kind  RunKind
	Since time.Time
}

// unproven names the instances that took an incarnation of the newest formed epoch and could still run: all but this
// one. An instance is silent because it said so itself, or by witnesses. A newer incarnation of another instance proves
// nothing here. For a join it does, because a join asks the quorum that the former VM would need; but a lone voter
// whose VM is recreated runs on until it hears of that.
func (h History) unproven() []UnprovenStop {
	var out []UnprovenStop
	for p, incarnations := range h.Record.Replicas {
		for n, i := range incarnations {
			if i.Epoch != h.Formed.Number {
				continue
			}
			if why := h.speaks(i, incarnations[n+1:]); why != "" {
				out = append(out, UnprovenStop{p, i.InstanceID, why})
			}
		}
	}
	out = append(out, h.strangeMarks()...)
	slices.SortFunc(out, func(a, b UnprovenStop) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// speaks is what shows, or does not exclude, that the instance of an incarnation runs; empty: it is silent. later are
// the incarnations of the place after it.
func (h History) speaks(i record.Incarnation, later []record.Incarnation) string {
	// the newest of them speaks for the instance, but not for a boot that does not heed it
	if next := nextOf(i, later); next != nil {
		return h.olderBootSpeaks(i, *next)
	}
	switch s, said := saidStopped(h.Formed, i, h.silent(), h.Me.InstanceID); {
	case s != nil:
		return h.spokenForSpeaks(i, *s)
	case said:
		return ""
	}
	return h.witness(i)
}

// spokenForSpeaks: a later boot, whose disk could carry no incarnation of its own, has spoken for an older one, which
// still writes marks.
func (h History) spokenForSpeaks(i record.Incarnation, s record.Stopped) string {
	_, awaited := h.olderBeat(i, s.BootID)
	if awaited == "" || s.BootID == "" {
		return ""
	}
	return "a later boot of it has said that it stopped, and an older one has written a mark; " + awaited
}

// olderBeat is the newest mark that the boot of the incarnation wrote, another than the later one, and what is awaited
// until it counts as the last; empty: nothing.
func (h History) olderBeat(i record.Incarnation, later string) (b Beat, awaited string) {
	b, ok := h.Beats[BeatKey{IncarnationMember(i), i.BootID}]
	if !ok || i.BootID == later || h.Now.Sub(b.Seen) >= MarkSilence {
		return b, ""
	}
	return b, left("no further mark", MarkSilence-h.Now.Sub(b.Seen))
}

// olderBootSpeaks: the instance was started again, perhaps on another host, and its older boot still wrote marks when
// the newer one took its incarnation, or shortly before. It stops once it reads of that, but nobody knows when it does.
func (h History) olderBootSpeaks(i, next record.Incarnation) string {
	b, awaited := h.olderBeat(i, next.BootID)
	switch {
	case awaited == "" || next.Written.IsZero() || next.Written.Sub(b.Written) >= MarkSilence:
		// it had fallen silent by then
		return ""
	case b.Written.After(next.Written):
		return "an older boot of it has written a mark since the newer one began; " + awaited
	}
	return "an older boot of it wrote a mark shortly before the newer one began; " + awaited
}

// silent are the instances that the order to restore calls silent.
func (h History) silent() []string {
	if r := h.Orders.Restore; r != nil {
		return r.Restore.Silent
	}
	return nil
}

// witness asks the three that can know: the lists of the Compute API; the bucket, where a living member's mark is
// written anew each MarkPeriod; and the disk, without which nothing can be acknowledged. What the API says of a VM is
// no proof by itself: nothing is promised of a host that it cannot reach.
func (h History) witness(i record.Incarnation) string {
	run, ok := h.Compute.Runs[i.InstanceID]
	switch {
	case !h.twoLists():
		return "it has not said that it has stopped, and there are not yet two lists of VMs in which this replica's is"
	case !ok || h.Compute.Second.Time.Sub(run.Since) < listingGap:
		return fmt.Sprintf("it has not said that it has stopped, and the last two lists of VMs call it %s and %s",
			cmp.Or(StatusIn(h.Compute.First, i.InstanceID), "absent"), cmp.Or(StatusIn(h.Compute.Second, i.InstanceID),
				"absent"))
	case run.Kind == RunAbsent:
		return cmp.Or(h.diskSpeaks(i), h.markSpeaks(i, run.Since))
	case h.weStopped(i):
		return ""
	}
	return cmp.Or(h.stopSpeaks(i), h.markSpeaks(i, run.Since))
}

// diskSpeaks: the VM is in no list, and its data disk is attached to it all the same, or cannot be read.
func (h History) diskSpeaks(i record.Incarnation) string {
	for _, l := range []Listing{h.Compute.First, h.Compute.Second} {
		switch {
		case l.DisksErr != nil:
			return "no list has its VM, and the disks cannot be listed: " + l.DisksErr.Error()
		case i.DiskID == "":
			return "no list has its VM, and which data disk it had is not known"
		case slices.Contains(l.Users[i.DiskID], i.Place) && !holdsName(l, i):
			return fmt.Sprintf("no list has its VM, but its data disk %s is attached to it", i.DiskID)
		}
	}
	return ""
}

// holdsName: another instance is listed under the name, so what is attached to that name is attached to that one.
func holdsName(l Listing, i record.Incarnation) bool {
	return slices.ContainsFunc(l.Instances, func(x Instance) bool {
		return x.Place == i.Place && x.InstanceID != i.InstanceID && x.Status != StatusUnknown
	})
}

// stopSpeaks: the VM is said to be stopped, and not for so long that a host which only lost its way to the API has been
// noticed.
func (h History) stopSpeaks(i record.Incarnation) string {
	l := h.Compute.Second
	n := slices.IndexFunc(l.Instances, func(x Instance) bool { return x.InstanceID == i.InstanceID })
	if n < 0 || l.Instances[n].LastStop.IsZero() || l.ServerTime.IsZero() {
		return "its VM is said to be stopped, and the API does not say since when"
	}
	if since := l.ServerTime.Sub(l.Instances[n].LastStop); since < StopSilence {
		return "its VM is said to be stopped, by another than `quorate restore --stop-vms`; " +
			left("time", StopSilence-since)
	}
	return ""
}

// weStopped: an operation of ours that stopped the VM has ended, and no mark of that boot was written since.
func (h History) weStopped(i record.Incarnation) bool {
	at, ours := h.Orders.VMStopped(i, h.Formed.Number)
	return ours && !slices.ContainsFunc(h.beatsOf(i), func(b Beat) bool { return b.Written.After(at) })
}

// markSpeaks: the member's mark was written less than MarkSilence ago, or the lists are younger than that. An
// incarnation that was never confirmed writes none.
func (h History) markSpeaks(i record.Incarnation, since time.Time) string {
	if i.Started == nil {
		return ""
	}
	for _, b := range h.beatsOf(i) {
		if b.Seen.After(since) {
			since = b.Seen
		}
	}
	if wait := MarkSilence - h.Now.Sub(since); wait > 0 {
		return "its VM is gone or stopped by the lists of VMs; " + left("no further mark of its member in the bucket",
			wait)
	}
	return ""
}

// beatsOf are the newest marks of an incarnation's member by its own boot, or by one that did not say which it was.
func (h History) beatsOf(i record.Incarnation) (out []Beat) {
	for _, boot := range []string{i.BootID, ""} {
		if b, ok := h.Beats[BeatKey{IncarnationMember(i), boot}]; ok {
			out = append(out, b)
		}
	}
	return out
}

// strangeMarks are members of the epoch that write marks and that no incarnation names: a record that was rolled back
// has lost theirs.
func (h History) strangeMarks() (out []UnprovenStop) {
	for _, id := range slices.Sorted(maps.Keys(h.Record.Marks)) {
		m := h.Record.Marks[id]
		if _, known := h.IncarnationOf(id); known || m.Epoch != h.Formed.Number {
			continue
		}
		if wait := MarkSilence - h.Now.Sub(h.Beats[BeatKey{id, m.BootID}].Seen); wait > 0 {
			out = append(out, UnprovenStop{InstanceID: id.String(), Witness: "it has left a mark, and no incarnation " +
				"in the record is its; " + left("no further mark", wait)})
		}
	}
	return out
}

// left says how long a witness has to stay as it is.
func left(what string, d time.Duration) string {
	return fmt.Sprintf("%s for another %d s proves it silent", what, int64((d+time.Second-1)/time.Second))
}

// StatusUnknown is the status of an instance that no answer shows and no answer denies.
const StatusUnknown = "unknown"

// NoteRuns goes on with the runs of lists by the newest one, which has to be whole: an instance that it does not call
// what its run calls it begins another run, or none. v was read before the list was made: an instance that it does not
// name may be younger than the list.
func NoteRuns(runs map[string]Run, l Listing, v record.View, me string) {
	if l.Err != nil || !InList(l, me) {
		return
	}
	for _, incarnations := range v.Replicas {
		for _, i := range incarnations {
			kind := RunKindOf(StatusIn(l, i.InstanceID))
			switch run, ok := runs[i.InstanceID]; {
			case kind == "":
				delete(runs, i.InstanceID)
			case !ok || run.Kind != kind:
				runs[i.InstanceID] = Run{kind, l.Time}
			}
		}
	}
}

// RunKindOf is what a list says of an instance, as far as it may prove that it does not run. STOPPING, SUSPENDED and
// any state that is not known prove nothing.
func RunKindOf(status string) RunKind {
	switch status {
	case "":
		return RunAbsent
	case "TERMINATED", "STOPPED":
		return RunStopped
	}
	return ""
}

// ForgetStops ends the runs of lists that call an instance stopped: a VM that was stopped before an order was given, or
// accepted, may have been started since without having read it. One that is absent never comes back under its id.
func ForgetStops(runs map[string]Run) {
	maps.DeleteFunc(runs, func(_ string, r Run) bool { return r.Kind == RunStopped })
}

// NoteBeats remembers when a mark was first found to have been written anew.
func NoteBeats(beats map[BeatKey]Beat, v record.View, now time.Time) {
	for id, mark := range v.Marks {
		written := mark.Written
		if written.IsZero() {
			written = mark.Beat
		}
		key := BeatKey{id, mark.BootID}
		if b, ok := beats[key]; !ok || !b.Written.Equal(written) {
			beats[key] = Beat{Written: written, Seen: now}
		}
	}
}
