package bucket

import (
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// snapshotTime is the form of the time in a name; milliseconds, so that two savers never meet.
const snapshotTime = "20060102T150405.000Z"

// counting returns the .json entries of the snapshots that have both objects.
func counting(entries []entry) []entry {
	databases := map[string]bool{}
	for _, e := range entries {
		if k := record.ParseKey(e.key); k.Kind == record.SnapshotObject {
			databases[k.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
		k := record.ParseKey(e.key)
		return k.Kind != record.SnapshotInfoObject || !databases[k.Name]
	})
}

// taken reads the names of the snapshots that count.
func taken(entries []entry) (out []record.Taken) {
	for _, e := range counting(entries) {
		if t, ok := takenOf(record.ParseKey(e.key).Name); ok {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, compareTaken)
	return out
}

// takenOf reads one name.
func takenOf(name string) (record.Taken, bool) {
	epoch, rest, _ := strings.Cut(name, "/")
	revision, at, _ := strings.Cut(rest, "-")
	e, ok := record.ParseNumber(epoch)
	r, numbered := record.ParseNumber(revision)
	t, err := time.Parse(snapshotTime, at)
	return record.Taken{Name: name, Epoch: e, Revision: int64(r), Time: t.UTC()}, ok && numbered && err == nil
}

// takenAs is the same for a snapshot that was read.
func takenAs(s record.Snapshot) record.Taken {
	return record.Taken{Name: s.Name, Epoch: s.Epoch, Revision: s.Revision, Time: s.Time}
}

// compareTaken orders by epoch, then by time, then by name.
func compareTaken(a, b record.Taken) int {
	if a.Epoch != b.Epoch {
		if a.Epoch < b.Epoch {
			return -1
		}
		return 1
	}
	if c := a.Time.Compare(b.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
