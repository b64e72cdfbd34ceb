package order

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
)

func TestALivingClusterIsNotEnded(t *testing.T) {
	for _, tc := range []struct {
		name string
		say  func(*Restore)
		want string
		left time.Duration
	}{
		{"silent for ten minutes", func(*Restore) {}, "", 0},
		{"a mark of half a minute ago", func(r *Restore) { r.mark(0xa1, 30*time.Second) },
			"the cluster lives: member a1 went on 30s ago, which takes a quorum.", 30 * time.Second},
		{"the newest of two", func(r *Restore) {
			r.mark(0xa1, 30*time.Second)
			r.mark(0xb1, 20*time.Second)
		}, "member b1 went on 20s ago", 40 * time.Second},
		{"a heartbeat of a member that does not come further", func(r *Restore) {
			m := r.Record.Marks[0xa1]
			m.Beat, m.Written = now, now
			r.Record.Marks[0xa1] = m
		}, "", 0},
		{"a mark of another epoch", func(r *Restore) {
			r.Record.Marks[0xff] = record.Mark{MemberID: 0xff, Epoch: 7, Time: now}
		}, "", 0},
		{"formed just now", func(r *Restore) { r.Ends.Outcome.Time = now.Add(-time.Minute) },
			"epoch 1 was formed 1m0s ago, so it may well have a quorum: a member that serves writes its first mark " +
				"only up to a minute after its control plane has started, and that takes a while, too.", time.Minute},
		{"rebuilt just now", func(r *Restore) {
			r.Ends.Outcome.Time, r.Ends.Claim.Source.Kind = now.Add(-time.Minute), record.SourceRebuilt
		}, "the record of epoch 1 was rebuilt 1m0s ago, and its members' marks with it are gone, so it may",
			time.Minute},
		{"closed already", func(r *Restore) { r.Ends.Outcome.Time, r.Ends.Closed = now, &record.Closed{} }, "", 0},
	} {
		r := lostQuorum()
		tc.say(&r)
		got, left := r.living()
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") || left != tc.left {
			t.Errorf("%s: %q for %s, want %q for %s", tc.name, got, left, tc.want, tc.left)
		}
	}
}
