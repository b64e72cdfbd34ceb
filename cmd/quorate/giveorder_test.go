package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/record/bucket/buckettest"
	"github.com/quorate/quorate/internal/replica"
)

// formed is a record of a cluster whose first epoch was formed.
func formed(t *testing.T) *bucket.Store {
	t.Helper()
	store := buckettest.Serve(t, t.TempDir(), "demo")
	_, _, inception := store.CreateInception(t.Context(), record.Inception{UID: "u", Name: "demo", ProjectNumber: "1",
		Region: "us-central1", Time: time.Now()})
	_, _, claim := store.CreateClaim(t.Context(), 1, record.Claim{Token: "t", MaxLearners: 4, Time: time.Now(),
		Seeder: record.Seeder{Place: placeA, InstanceID: "101"}, Source: record.Source{Kind: record.SourceEmpty}})
	_, _, outcome := store.CreateOutcome(t.Context(), 1, record.Outcome{Formed: &record.Formed{ClusterID: 0xc1,
		MemberID: 0xa1}, Time: time.Now()})
	if err := errors.Join(inception, claim, outcome); err != nil {
		t.Fatal(err)
	}
	return store
}

var placeA = replica.Place{Zone: "us-central1-a", Name: "master-a"}

// Between the record's being read and the verdict's being written the restorer may have written its own, which counts.
func TestAWithdrawalThatLosesTheRaceIsTooLate(t *testing.T) {
	store := formed(t)
	o, err := store.CreateOrder(t.Context(), record.Order{Kind: record.OrderRestore, By: "x",
		Restore: &record.RestoreOrder{Ends: 1, Replica: placeA}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := order.NewLog(v, time.Now())
	d, err := log.CheckWithdraw("1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.SettleOrder(t.Context(), o.Number, record.Verdict{Closing: true, By: "a"}); err != nil {
		t.Fatal(err)
	}
	_, err = settle(t.Context(), store, log, d.Settles)
	if err == nil || !strings.Contains(err.Error(), "too late: order 1 is being carried out since ") ||
		exitCode(err) == exitOK {
		t.Errorf("%v", err)
	}
}
