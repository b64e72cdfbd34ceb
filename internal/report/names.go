package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// The folders, below the prefix that a cluster has for them.
const (
	// ReplicasFolder has all reports.
	ReplicasFolder = "replicas/"
	// EventsFolder is the only folder from which anything is deleted.
	EventsFolder = "events/"
)

// stamp is how a time stands in a name: names sort by it.
const stamp = "20060102T150405.000Z"

// Folder is where a cluster's reports and events lie, next to the folder of its record. No cluster can have this name,
// so none reads another's.
func Folder(cluster string) string { return cluster + ".reports/" }

// Key is the object of a replica's report.
func Key(p replica.Place) string { return ReplicasFolder + p.String() + ".json" }

// PlaceOf is the inverse of Key.
func PlaceOf(key string) (replica.Place, bool) {
	name, ok := strings.CutPrefix(key, ReplicasFolder)
	name, isJSON := strings.CutSuffix(name, ".json")
	if !ok || !isJSON {
		return replica.Place{}, false
	}
	return replica.ParsePlace(name)
}

// Key is the object of a batch of events: its time, replica, boot and number.
func (b Batch) Key() string {
	boot := b.BootID
	if len(boot) > 8 {
		boot = boot[:8]
	}
	return fmt.Sprintf("%s%s_%s_%s_%06d.json", EventsFolder, b.At.UTC().Format(stamp), b.Place, boot, b.Number)
}

// EventsFrom begins the names of batches that were begun at a time or later.
func EventsFrom(t time.Time) string { return EventsFolder + t.UTC().Format(stamp) }

// IsEvents reports whether an object is a batch of events.
func IsEvents(key string) bool {
	name, ok := strings.CutPrefix(key, EventsFolder)
	at, rest, found := strings.Cut(name, "_")
	_, err := time.Parse(stamp, at)
	return ok && found && strings.HasSuffix(rest, ".json") && err == nil
}
