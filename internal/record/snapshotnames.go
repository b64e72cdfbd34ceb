package record

import (
	"slices"
	"strings"
	"time"
)

// Taken is what the name of a snapshot says.
type Taken struct {
	Name     string
	Epoch    uint64
	Revision int64
	Time     time.Time
}

const (
	// databaseSuffix ends the name of the object that holds the compressed database.
	databaseSuffix = ".db.zst"
	// snapshotTime is the form of the time in a name; milliseconds, so that two savers never meet.
	snapshotTime = "20060102T150405.000Z"
)

// counting returns the .json entries of the snapshots that have both objects.
func counting(entries []entry) []entry {
	databases := map[string]bool{}
	for _, e := range entries {
		if k := parseKey(e.key); k.kind == snapshotObject {
			databases[k.name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
		k := parseKey(e.key)
		return k.kind != snapshotInfoObject || !databases[k.name]
	})
}

// taken reads the names of the snapshots that count.
func taken(entries []entry) (out []Taken) {
	for _, e := range counting(entries) {
		if t, ok := takenOf(parseKey(e.key).name); ok {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, compareTaken)
	return out
}

// takenOf reads one name.
func takenOf(name string) (Taken, bool) {
	epoch, rest, _ := strings.Cut(name, "/")
	revision, at, _ := strings.Cut(rest, "-")
	e, ok := parseNumber(epoch)
	r, numbered := parseNumber(revision)
	t, err := time.Parse(snapshotTime, at)
	return Taken{Name: name, Epoch: e, Revision: int64(r), Time: t.UTC()}, ok && numbered && err == nil
}

// taken is the same for a snapshot that was read.
func (s Snapshot) taken() Taken {
	return Taken{Name: s.Name, Epoch: s.Epoch, Revision: s.Revision, Time: s.Time}
}

// compareTaken orders by epoch, then by time, then by name.
func compareTaken(a, b Taken) int {
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
