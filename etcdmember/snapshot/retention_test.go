package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

// shot is a snapshot of an epoch, some time before t0.
func shot(epoch uint64, ago time.Duration, why string) record.Snapshot {
	at := t0.Add(-ago)
	return record.Snapshot{Name: fmt.Sprintf("%d/%s", epoch, at.Format(time.RFC3339)), Epoch: epoch, Time: at, Why: why}
}

// agos spells which of a list are there, by their age.
func agos(list []record.Snapshot) string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprintf("%d:%s", s.Epoch, t0.Sub(s.Time)))
	}
	return strings.Join(out, " ")
}

func TestExpired(t *testing.T) {
	week := Retention{Hourly: 7 * 24 * time.Hour, Daily: 90 * 24 * time.Hour}
	const day, h, m = 24 * time.Hour, time.Hour, time.Minute
	s := func(agos ...time.Duration) (out []record.Snapshot) {
		for _, ago := range agos {
			out = append(out, shot(1, ago, WhySchedule))
		}
		return out
	}
	for name, c := range map[string]struct {
		list []record.Snapshot
		r    Retention
		held string
		want []record.Snapshot
	}{
		"none": {},
		// t0 is 12:00.
		"the last one of each hour stays": {list: s(3*h+10*m, 2*h+50*m, 2*h+20*m, 2*h+10*m, 10*m),
			r: week, want: s(2*h+50*m, 2*h+20*m)},
		"of hours a week ago too": {list: s(6*day+50*m, 6*day+10*m, 0), r: week,
			want: s(6*day + 50*m)},
		"after a week, the last one of each day": {list: s(9*day, 8*day+11*h, 8*day+5*h, 8*day-11*h, 0),
			r: week, want: s(8*day+11*h, 8*day+5*h)},
		"after the days, none": {list: s(91*day, 90*day+m, 89*day, 0), r: week,
			want: s(91*day, 90*day+m)},
		"the newest stays, however old": {list: s(400*day, 300*day), r: week,
			want: s(400 * day)},
		"one of the future stays": {list: s(30*m, -2*h), r: week},
		"what is not of the schedule stays with its hour full": {list: []record.Snapshot{shot(1, 50*m, "by hand"),
			shot(1, 40*m, WhySchedule), shot(1, 20*m, "order 3"), shot(1, 10*m, WhySchedule)}, r: week,
			want: s(40 * m)},
		"but not for ever": {list: []record.Snapshot{shot(1, 8*day+5*h, "by hand"),
			shot(1, 8*day+4*h, "by hand"), shot(1, 0, WhySchedule)}, r: week,
			want: []record.Snapshot{shot(1, 8*day+5*h, "by hand")}},
		"the last of the newest two epochs stay, whatever is newest": {
			list: []record.Snapshot{shot(1, 300*day, WhySchedule), shot(2, 200*day, WhySchedule),
				shot(2, 199*day, WhySchedule), shot(3, 150*day, WhySchedule), shot(3, 140*day, WhySchedule)},
			r: week, want: []record.Snapshot{shot(1, 300*day, WhySchedule), shot(2, 200*day, WhySchedule),
				shot(3, 150*day, WhySchedule)}},
		"the newest of all stays, also of an old epoch": {
			list: []record.Snapshot{shot(1, 100*day, WhySchedule), shot(2, 200*day, WhySchedule),
				shot(3, 300*day, WhySchedule)}, r: week},
		"epochs do not share an hour": {list: []record.Snapshot{shot(1, 50*m, WhySchedule),
			shot(2, 40*m, WhySchedule), shot(3, 30*m, WhySchedule)}, r: week},
		"the source of a restore stays": {list: s(400*day, 300*day, 0), r: week, held: shot(1, 400*day, "").Name,
			want: s(300 * day)},
		"a short retention": {list: s(5*h, 3*h, 90*m, 0), r: Retention{Hourly: 2 * h, Daily: 2 * h},
			want: s(5*h, 3*h)},
		"retention of nothing keeps one": {list: s(5*h, 3*h, 0), r: Retention{}, want: s(5*h, 3*h)},
	} {
		t.Run(name, func(t *testing.T) {
			got := Expired(t0, c.list, c.r, func(name string) bool { return name == c.held })
			if agos(got) != agos(c.want) {
				t.Errorf("expired %s\nwant    %s", agos(got), agos(c.want))
			}
		})
	}
}

// TestExpiredOfAYear: a year of hourly snapshots is thinned out as the words say, and what stays now stays if asked
// again.
func TestExpiredOfAYear(t *testing.T) {
	var list []record.Snapshot
	for ago := 365 * 24 * time.Hour; ago >= 0; ago -= time.Hour {
		list = append(list, shot(1, ago, WhySchedule))
	}
	r := Retention{Hourly: 7 * 24 * time.Hour, Daily: 90 * 24 * time.Hour}
	none := func(string) bool { return false }
	kept := keptOf(list, Expired(t0, list, r, none))
	if len(kept) != 169+83 { // 168 hours and the one at the edge, from 13 November on; 22 August to 12 November
		t.Errorf("%d stay: want 252", len(kept))
	}
	if again := Expired(t0, kept, r, none); len(again) != 0 {
		t.Errorf("asked again: %s", agos(again))
	}
}

// No saver's clock makes anything expire early. Each case has a week of hourly snapshots, stored when they were taken,
// and one more by a saver whose clock is wrong, which then keeps the retention.
func TestAWrongClockDeletesNothing(t *testing.T) {
	r := Retention{Hourly: 7 * 24 * time.Hour, Daily: 90 * 24 * time.Hour}
	var list []record.Snapshot
	for ago := 6 * 24 * time.Hour; ago > 0; ago -= time.Hour {
		s := shot(1, ago, WhySchedule)
		s.Written = s.Time
		list = append(list, s)
	}
	for name, ahead := range map[string]time.Duration{"an hour ahead": time.Hour, "a month ahead": 30 * 24 * time.Hour,
		"a year ahead": 365 * 24 * time.Hour, "a year behind": -365 * 24 * time.Hour} {
		wrong := shot(1, -ahead, WhySchedule)
		wrong.Written = t0
		all := append(slices.Clone(list), wrong)
		slices.SortFunc(all, func(a, b record.Snapshot) int { return a.Time.Compare(b.Time) })
		if got := Expired(t0.Add(ahead), all, r, func(string) bool { return false }); len(got) > 0 {
			t.Errorf("%s: %d of %d expired, such as %s", name, len(got), len(all), agos(got[:1]))
		}
		// A day later, by a saver whose clock is right.
		right := shot(1, -24*time.Hour, WhySchedule)
		right.Written = right.Time
		all = append(all, right)
		slices.SortFunc(all, func(a, b record.Snapshot) int { return a.Time.Compare(b.Time) })
		if got := Expired(right.Time, all, r, func(string) bool { return false }); len(got) > 0 {
			t.Errorf("%s, and a day later: %s expired", name, agos(got))
		}
	}
}

// A snapshot by a clock that was ahead is not the last one of an hour that had not begun.
func TestAWrongClockTakesNobodysHour(t *testing.T) {
	wrong, right := shot(1, -90*time.Minute, WhySchedule), shot(1, -65*time.Minute, WhySchedule)
	wrong.Written, right.Written = t0.Add(30*time.Minute), right.Time
	got := Expired(right.Time, []record.Snapshot{right, wrong}, Retention{Hourly: 24 * time.Hour},
		func(string) bool { return false })
	if len(got) > 0 {
		t.Errorf("expired %s", agos(got))
	}
}

func keptOf(list, expired []record.Snapshot) []record.Snapshot {
	return slices.DeleteFunc(slices.Clone(list), func(s record.Snapshot) bool { return slices.Contains(expired, s) })
}

// snapshots is a record's snapshots in memory.
type snapshots struct {
	list    []record.Snapshot
	view    record.View
	deleted []string
	swept   time.Time
	err     error
	// after happens once one was deleted.
	after func()
}

func (s *snapshots) View(context.Context) (record.View, error)            { return s.view, s.err }
func (s *snapshots) Snapshots(context.Context) ([]record.Snapshot, error) { return s.list, nil }
func (s *snapshots) DeleteSnapshot(_ context.Context, name string) error {
	s.deleted = append(s.deleted, name)
	if s.after != nil {
		s.after()
	}
	return nil
}
func (s *snapshots) SweepSnapshots(_ context.Context, before time.Time) (int, error) {
	s.swept = before
	return 0, nil
}

func TestRetentionKeepsTheSourceOfARestore(t *testing.T) {
	old, older, newest := shot(1, 300*24*time.Hour, WhySchedule), shot(1, 400*24*time.Hour, WhySchedule),
		shot(1, 0, WhySchedule)
	from := func(name string) record.Source { return record.Source{Kind: record.SourceSnapshot, Snapshot: name} }
	formed := func(upTo uint64) (out []record.Epoch) {
		for n := uint64(1); n <= upTo; n++ {
			out = append(out, record.Epoch{Number: n, Claim: &record.Claim{Source: from("gone")},
				Outcome: &record.Outcome{Formed: &record.Formed{}}})
		}
		return out
	}
	claimed := append(formed(1), record.Epoch{Number: 2, Claim: &record.Claim{Source: from(older.Name)}})
	restore := func(number uint64, name string) record.Order {
		return record.Order{Number: number, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1,
			From: from(name)}}
	}
	withdraw := func(number, n uint64) record.Order {
		return record.Order{Number: number, Kind: record.OrderWithdraw, Withdraws: n}
	}
	accepted := restore(1, old.Name)
	accepted.Accepted = &record.Accepted{}
	done := restore(1, old.Name)
	done.Done = &record.Done{}
	none := []string{older.Name, old.Name}
	for name, c := range map[string]struct {
		view record.View
		want []string
	}{
		"no restore": {record.View{Epochs: formed(1)}, none},
		"an order": {record.View{Epochs: formed(1), Orders: []record.Order{restore(1, old.Name)}},
			[]string{older.Name}},
		"an order is done": {record.View{Epochs: formed(1), Orders: []record.Order{done}}, none},
		"an order was withdrawn": {record.View{Epochs: formed(1), Orders: []record.Order{restore(1, old.Name),
			withdraw(2, 1)}}, none},
		"an accepted one is being withdrawn, and may be carried out yet": {record.View{Epochs: formed(1),
			Orders: []record.Order{accepted, withdraw(2, 1)}}, []string{older.Name}},
		"its withdrawal was": {record.View{Epochs: formed(1), Orders: []record.Order{restore(1, old.Name),
			withdraw(2, 1), withdraw(3, 2)}}, []string{older.Name}},
		"a newer order": {record.View{Epochs: formed(1), Orders: []record.Order{restore(1, older.Name),
			restore(2, old.Name)}}, []string{older.Name}},
		"a newer one is withdrawn": {record.View{Epochs: formed(1), Orders: []record.Order{restore(1, older.Name),
			restore(2, old.Name), withdraw(3, 2)}}, []string{old.Name}},
		"its epoch has ended": {record.View{Epochs: formed(2), Orders: []record.Order{restore(1, old.Name)}},
			none},
		"a claim": {record.View{Epochs: claimed}, []string{old.Name}},
		"a claim whose order was withdrawn": {record.View{Epochs: claimed,
			Orders: []record.Order{restore(1, older.Name), withdraw(2, 1)}}, []string{old.Name}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshots{list: []record.Snapshot{older, old, newest}, view: c.view}
			got, err := KeepRetention(t.Context(), s, t0, Retention{time.Hour, time.Hour})
			if err != nil || !slices.Equal(got, c.want) || !slices.Equal(s.deleted, c.want) ||
				!s.swept.Equal(t0.Add(-sweepAge)) {
				t.Errorf("deleted %v (%v), swept before %s, %v: want %v", got, s.deleted, s.swept, err, c.want)
			}
		})
	}
	late := &snapshots{list: []record.Snapshot{older, old, newest}, view: record.View{Epochs: formed(1)}}
	late.after = func() { late.view.Orders = []record.Order{restore(1, old.Name)} }
	if got, err := KeepRetention(t.Context(), late, t0, Retention{time.Hour, time.Hour}); err != nil ||
		!slices.Equal(got, []string{older.Name}) {
		t.Errorf("an order was given while it deleted: deleted %v, %v", got, err)
	}
	s := &snapshots{list: []record.Snapshot{older, old, newest}, err: errors.New("away")}
	if _, err := KeepRetention(t.Context(), s, t0, Retention{}); err == nil || len(s.deleted) > 0 {
		t.Errorf("without knowing the restores: deleted %v, %v", s.deleted, err)
	}
}
