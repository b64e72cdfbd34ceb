package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Retention says how long snapshots stay.
type Retention struct {
	// Hourly is how long one for each hour stays, and each that was not taken by schedule; Daily how long one for each
	// day.
	Hourly, Daily time.Duration
}

// WhySchedule is what a snapshot of the schedule is for. Those that a person or an order asked for stay longer.
const WhySchedule = "schedule"

// Expired returns the snapshots whose time has come, out of all that count, in their order. Of each hour and each day
// in UTC the last one stays. Whatever their age, the newest snapshot stays, and the last one of each of the two newest
// epochs: after a restore, the newest state of the history that it ended. So does what held names: the source of a
// restore that has not come to its end. No clock of a saver makes anything expire early: see storeTime, believed and
// ageOf.
func Expired(now time.Time, all []record.Snapshot, r Retention, held func(name string) bool) (out []record.Snapshot) {
	now = storeTime(now, all)
	list := believed(all)
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
		age := ageOf(s, now)
		hour := slot{s.Epoch, s.Time.UTC().Truncate(time.Hour)}
		day := slot{s.Epoch, s.Time.UTC().Truncate(24 * time.Hour)}
		keep := age <= r.Hourly && (s.Why != WhySchedule || !hours[hour]) || age <= r.Daily && !days[day]
		if keep || lasting[s.Name] || held(s.Name) {
			hours[hour], days[day] = true, true
			continue
		}
		expired[s.Name] = true
	}
	for _, s := range all {
		if expired[s.Name] {
			out = append(out, s)
		}
	}
	return out
}

// storeTime is the time by which snapshots age: this machine's, but not later than the newest one was written by the
// store's clock. Retention runs after a saving, so that is now. A machine whose clock is a month ahead would else find
// all but the newest ones a month older than they are.
func storeTime(now time.Time, list []record.Snapshot) time.Time {
	var newest time.Time
	for _, s := range list {
		if s.Written.After(newest) {
			newest = s.Written
		}
	}
	if !newest.IsZero() && newest.Before(now) {
		return newest
	}
	return now
}

// believed is the list by times that can be: a snapshot cannot have been taken after it was stored. One that says so
// was taken by a clock that was ahead, and would be the last of hours and days in which others are.
func believed(all []record.Snapshot) []record.Snapshot {
	list := slices.Clone(all)
	for n := range list {
		if s := &list[n]; !s.Written.IsZero() && s.Time.After(s.Written.Add(clockSlack)) {
			s.Time = s.Written
		}
	}
	slices.SortStableFunc(list, func(a, b record.Snapshot) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), a.Time.Compare(b.Time))
	})
	return list
}

// ageOf is the younger of a snapshot's two ages: since it was taken, by its saver's clock, and since it was stored. A
// clock that was behind makes the first too high, a bucket that was copied the second too low.
func ageOf(s record.Snapshot, now time.Time) time.Duration {
	if s.Written.IsZero() {
		return now.Sub(s.Time)
	}
	return min(now.Sub(s.Time), now.Sub(s.Written))
}

// lastOfEpochs are the newest snapshot of all, and the last of the two newest epochs that have one. The list is sorted
// by epoch and time.
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

// RetentionStore is what retention needs of the record.
type RetentionStore interface {
	View(ctx context.Context) (record.View, error)
	Snapshots(ctx context.Context) ([]record.Snapshot, error)
	DeleteSnapshot(ctx context.Context, name string) error
	SweepSnapshots(ctx context.Context, before time.Time) (removed int, err error)
}

// KeepRetention deletes what has expired, and what savers that died have left. Two at once delete the same. It returns
// what it deleted.
func KeepRetention(ctx context.Context, store RetentionStore, now time.Time, r Retention) (deleted []string,
	err error) {
	list, err := store.Snapshots(ctx)
	if err != nil {
		return nil, fmt.Errorf("keep the retention of snapshots: %w", err)
	}
	view, err := store.View(ctx) // after the list: an order that names one of them is in it
	if err != nil {
		return nil, fmt.Errorf("keep the retention of snapshots: %w", err)
	}
	for _, s := range Expired(now, list, r, heldByRestore(view, now)) {
		if view, err = store.View(ctx); err != nil { // many deletes take long, and an order may be given meanwhile
			return deleted, fmt.Errorf("keep the retention of snapshots: %w", err)
		}
		if heldByRestore(view, now)(s.Name) {
			continue
		}
		if err := store.DeleteSnapshot(ctx, s.Name); err != nil {
			return deleted, fmt.Errorf("keep the retention of snapshots: %w", err)
		}
		deleted = append(deleted, s.Name)
	}
	if _, err := store.SweepSnapshots(ctx, storeTime(now, list).Add(-sweepAge)); err != nil {
		return deleted, fmt.Errorf("keep the retention of snapshots: %w", err)
	}
	return deleted, nil
}

// heldByRestore finds the sources of restores: of the order by which the agents go (table.OrdersOf), as long as the
// epoch that it ends is the newest formed one, and of each epoch while it is claimed and has no outcome. An order that
// was withdrawn or superseded never gets its `.done.json`, nor need one whose epoch was ended by another: each would
// hold its snapshot for ever.
func heldByRestore(v record.View, now time.Time) func(name string) bool {
	names := map[string]bool{}
	formed := record.NumberOf(v.NewestFormed())
	for _, o := range v.Orders {
		if o.Restore == nil || o.Restore.Ends < formed {
			continue
		}
		if f := table.OrdersOf(v.Orders, o.Restore.Ends, now).Restore; f != nil && f.Number == o.Number {
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
