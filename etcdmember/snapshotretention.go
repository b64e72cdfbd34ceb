package etcdmember

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// Retention says how long snapshots stay.
type Retention struct {
	// Hourly is how long one for each hour stays, and each that was not taken by schedule; Daily how long one for each day.
	Hourly, Daily time.Duration
}

// WhySchedule is what a snapshot of the schedule is for. Those that a person or an order asked for stay longer.
const WhySchedule = "schedule"

// sweepAge is how old a half-made snapshot must be to be somebody's who died. The slowest saving takes an hour.
const sweepAge = 24 * time.Hour

// Expired returns the snapshots whose time has come, out of all that count, in their order. Of each hour and each day in UTC the last one stays.
// Whatever their age, the newest snapshot stays, and the last one of each of the two newest epochs: after a restore, the newest state of the
// history that it ended. So does what held names: the source of a restore that has not come to its end.
func Expired(now time.Time, list []record.Snapshot, r Retention, held func(name string) bool) (out []record.Snapshot) {
	lasting := lastOfEpochs(list)
	type slot struct {
		epoch uint64
		begin time.Time
	}
	hours, days := map[slot]bool{}, map[slot]bool{}
	// From the newest on: the last one of an hour is met first, and takes the hour's place.
	expired := map[string]bool{}
	for n := len(list) - 1; n >= 0; n-- {
		s := list[n]
		age := now.Sub(s.Time)
		hour := slot{s.Epoch, s.Time.UTC().Truncate(time.Hour)}
		day := slot{s.Epoch, s.Time.UTC().Truncate(24 * time.Hour)}
		keep := age <= r.Hourly && (s.Why != WhySchedule || !hours[hour]) || age <= r.Daily && !days[day]
		if keep || lasting[s.Name] || held(s.Name) {
			hours[hour], days[day] = true, true
			continue
		}
		expired[s.Name] = true
	}
	for _, s := range list {
		if expired[s.Name] {
			out = append(out, s)
		}
	}
	return out
}

// lastOfEpochs are the newest snapshot of all, and the last of the two newest epochs that have one. The list is sorted by epoch and time.
func lastOfEpochs(list []record.Snapshot) map[string]bool {
	names := map[string]bool{}
	epochs := 0
	newest := record.Snapshot{}
	for n := len(list) - 1; n >= 0; n-- {
		if n == len(list)-1 || list[n].Epoch != list[n+1].Epoch {
			if epochs++; epochs <= 2 {
				names[list[n].Name] = true
			}
		}
		if list[n].Time.After(newest.Time) {
			newest = list[n]
		}
	}
	names[newest.Name] = true
	return names
}

// SnapshotShelf is what retention needs of the record.
type SnapshotShelf interface {
	View(ctx context.Context) (record.View, error)
	Snapshots(ctx context.Context) ([]record.Snapshot, error)
	DeleteSnapshot(ctx context.Context, name string) error
	SweepSnapshots(ctx context.Context, before time.Time) (removed int, err error)
}

// KeepRetention deletes what has expired, and what savers that died have left. Two at once delete the same. It returns what it deleted.
func KeepRetention(ctx context.Context, shelf SnapshotShelf, now time.Time, r Retention) (deleted []string, err error) {
	list, err := shelf.Snapshots(ctx)
	if err != nil {
		return nil, fmt.Errorf("keep the retention of snapshots: %w", err)
	}
	view, err := shelf.View(ctx) // after the list: an order that names one of them is in it
	if err != nil {
		return nil, fmt.Errorf("keep the retention of snapshots: %w", err)
	}
	for _, s := range Expired(now, list, r, heldByRestore(view)) {
		if err := shelf.DeleteSnapshot(ctx, s.Name); err != nil {
			return deleted, fmt.Errorf("keep the retention of snapshots: %w", err)
		}
		deleted = append(deleted, s.Name)
	}
	if _, err := shelf.SweepSnapshots(ctx, now.Add(-sweepAge)); err != nil {
		return deleted, fmt.Errorf("keep the retention of snapshots: %w", err)
	}
	return deleted, nil
}

// heldByRestore finds the sources of restores: of orders that are not done, and of the newest epoch while it is not formed.
func heldByRestore(v record.View) func(name string) bool {
	names := map[string]bool{}
	for _, o := range v.Orders {
		if o.Restore != nil && o.Done == nil {
			names[o.Restore.From.Snapshot] = true
		}
	}
	for _, e := range v.Epochs {
		if e.Claim != nil && e.Outcome == nil {
			names[e.Claim.Source.Snapshot] = true
		}
	}
	return func(name string) bool { return names[name] }
}
