package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/record"
)

// Between the record's being read and the verdict's being written the restorer may have written its own, which counts.
func TestAWithdrawalThatLosesTheRaceIsTooLate(t *testing.T) {
	store := formedRecord(t, time.Hour)
	o, err := store.CreateOrder(t.Context(), record.Order{Kind: record.OrderRestore, By: "x",
		Restore: &record.RestoreOrder{Ends: 1, Replica: placeA}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := order.NewLog(v, now)
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
