package restoring

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/record/bucket/buckettest"
)

// formedRecord is a record of a cluster that was formed a day ago and whose member a1 came further a
// while ago.
func formedRecord(t *testing.T, ago time.Duration) *bucket.Store {
	t.Helper()
	store := buckettest.Serve(t, t.TempDir(), "demo")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now().Add(-24 * time.Hour)
	_, _, err := store.CreateInception(t.Context(), record.Inception{UID: "u", Name: "demo", ProjectNumber: "1",
		Region: "us-central1", Time: began})
	must(err)
	_, _, err = store.CreateClaim(t.Context(), 1, record.Claim{Token: "t", MaxLearners: 4, Time: began,
		Seeder: record.Seeder{Place: placeA, InstanceID: "101"}, Source: record.Source{Kind: record.SourceEmpty}})
	must(err)
	_, _, err = store.CreateIncarnation(t.Context(), record.Incarnation{Place: placeA, Number: 1, InstanceID: "101",
		BootID: "b", Epoch: 1, DiskID: "d1", Time: began})
	must(err)
	_, _, err = store.ConfirmIncarnation(t.Context(), placeA, 1, record.Started{Epoch: 1, MemberID: 0xa1, Time: began})
	must(err)
	_, _, err = store.CreateOutcome(t.Context(), 1, record.Outcome{Formed: &record.Formed{ClusterID: 0xc1,
		MemberID: 0xa1}, Time: began})
	must(err)
	must(goesOn(t.Context(), store, time.Now().Add(-ago)))
	return store
}

func goesOn(ctx context.Context, store *bucket.Store, at time.Time) error {
	return store.WriteMark(ctx, record.Mark{MemberID: 0xa1, Epoch: 1, Term: 2, Applied: uint64(at.Unix()), Time: at})
}

// asked is what the flags of the command say.
type asked struct {
	order.Wish
	noWait bool
}

func TestARestoreWaitsUntilTheClusterIsSilent(t *testing.T) {
	for _, tc := range []struct {
		name  string
		flags asked
		ago   time.Duration
		// meanwhile happens while it waits.
		meanwhile func(ctx context.Context, store *bucket.Store, stop context.CancelFunc)
		seconds   int // after which it goes on
		want      string
		told      []string
	}{
		{"silent for a minute", asked{}, time.Minute, nil, 0, "", nil},
		{"silent for less", asked{}, 36 * time.Second, nil, 24, "", []string{
			"the cluster lives: member a1 went on 36s ago, which takes a quorum. If it has lost its quorum since,",
			"Waiting: another 24s without a sign of life. ^C ends this with nothing written.",
			"Waiting: another 14s", "Waiting: another 4s"}},
		{"not asked to wait", asked{noWait: true}, 36 * time.Second, nil, 0,
			"which takes a quorum.\nIf it has lost its quorum since, try again in 24s. To end a cluster that lives, " +
				"add --end-living-cluster; nothing was written", nil},
		{"asked to end what lives", asked{Wish: order.Wish{EndsLiving: true}}, 0, nil, 0, "", nil},
		{"a refusal does not wait", asked{Wish: order.Wish{From: "snapshot=1/2-x"}}, 36 * time.Second, nil, 0,
			"there is no snapshot 1/2-x", nil},
		{"nor does an instance that is not known", asked{Wish: order.Wish{Silent: []string{"999"}}},
			36 * time.Second, nil, 0,
			`--silent "999"`, nil},
		{"its last mark before the loss comes late", asked{}, 30 * time.Second,
			func(ctx context.Context, store *bucket.Store, _ context.CancelFunc) {
				_ = goesOn(ctx, store, time.Now())
			}, 60, "", nil},
		{"it goes on", asked{}, 10 * time.Second, func(ctx context.Context, store *bucket.Store,
			_ context.CancelFunc) {
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Second):
					_ = goesOn(ctx, store, time.Now())
				}
			}
		}, 40, "the cluster lives: member a1 goes on while this command waits, which takes a quorum.\nTo end a " +
			"cluster that lives, add --end-living-cluster; nothing was written", nil},
		{"^C", asked{}, 0, func(_ context.Context, _ *bucket.Store,
			stop context.CancelFunc) {
			time.Sleep(5 * time.Second)
			stop()
		}, 5,
			"no longer waiting: context canceled; nothing was written", nil},
		{"another gives an order", asked{}, 0, func(ctx context.Context, store *bucket.Store,
			_ context.CancelFunc) {
			time.Sleep(5 * time.Second)
			_, _ = store.CreateOrder(ctx, record.Order{Kind: record.OrderRestore, By: "x",
				Restore: &record.RestoreOrder{Ends: 1, Replica: placeA,
					From: record.Source{Kind: record.SourceDirectory, MemberID: 0xa1}}})
		}, 6, "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := formedRecord(t, tc.ago)
				r, err := Read(t.Context(), store, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				if tc.meanwhile != nil {
					go tc.meanwhile(ctx, store, stop)
				}
				var out strings.Builder
				begin := time.Now()
				_, err = UntilSilent(ctx, &out, store, r, tc.flags.Wish, tc.flags.noWait)
				stop()
				synctest.Wait()
				if got := time.Since(begin); got > time.Duration(tc.seconds+2)*time.Second ||
					got < time.Duration(tc.seconds)*time.Second {
					t.Errorf("went on after %s, want %d s", got, tc.seconds)
				}
				if err == nil {
					err = errors.New("")
				}
				if !strings.Contains(err.Error(), tc.want) || (err.Error() == "") != (tc.want == "") {
					t.Errorf("%q, want %q", err, tc.want)
				}
				text := strings.Join(strings.Fields(out.String()), " ")
				for _, want := range tc.told {
					if !strings.Contains(text, want) {
						t.Errorf("no %q in %s", want, text)
					}
				}
				if strings.Count(text, "Waiting: ") > tc.seconds/10+1 {
					t.Errorf("more than a line each 10 s: %s", text)
				}
			})
		})
	}
}
