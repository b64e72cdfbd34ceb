package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The restore that has to be given again is one of the same cluster, reached in the same way.
func TestAWithdrawnRestoreIsGivenAgainForTheSameCluster(t *testing.T) {
	w := wrecked()
	w.epoch.Closed = &record.Closed{}
	w.Epochs = []record.Epoch{w.epoch}
	w.Orders = []record.Order{{Number: 1, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: 1, Replica: placeA}}}
	b := newBook(w.View, now)
	d, err := checkWithdraw(b, "1")
	if err != nil {
		t.Fatal(err)
	}
	var f orderFlags
	cmd := &cobra.Command{}
	f.add(cmd)
	if err := cmd.ParseFlags([]string{"--config", "a.yaml", "--record", "gs://b"}); err != nil {
		t.Fatal(err)
	}
	d.order.Number = 2
	var out strings.Builder
	sayGiven(&out, &f, d, d.order, b, b)
	const want = "\nTo give the restore again: quorate restore --from SOURCE --config a.yaml --record gs://b\nTo take it back: quorate orders withdraw 2 --config"
	if !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

// A withdrawal of a withdrawal brings a leave back: it must leave a replica, as a leave must.
func TestTheLastReplicaIsNotOrderedToLeaveByAWithdrawal(t *testing.T) {
	leave := func(n uint64, p replica.Place) record.Order {
		return record.Order{Number: n, Kind: record.OrderLeave, Place: &p}
	}
	withdraw := func(n, what uint64) record.Order {
		return record.Order{Number: n, Kind: record.OrderWithdraw, Withdraws: what}
	}
	for _, tc := range []struct {
		name   string
		orders []record.Order
		number string
		want   string // why it is refused; empty: it is not
	}{
		{"the only one that stays does so by the withdrawal", []record.Order{leave(1, placeA), leave(2, placeB), withdraw(3, 1), leave(4, placeC)}, "3",
			"order 3 (withdraw 1): without it every replica that the record knows would be ordered to leave, so add one first; nothing was written"},
		{"through two withdrawals more", []record.Order{leave(1, placeA), leave(2, placeB), withdraw(3, 1), withdraw(4, 3), withdraw(5, 4), leave(6, placeC)}, "5",
			"order 5 (withdraw 4): without it every replica"},
		{"another stays", []record.Order{leave(1, placeA), leave(2, placeB), withdraw(3, 1)}, "3", ""},
		{"the leave has a newer one after it, which is in force", []record.Order{leave(1, placeA), withdraw(2, 1), leave(3, placeA), leave(4, placeB)}, "2", ""},
		{"the leave of the others is what is withdrawn", []record.Order{leave(1, placeA), leave(2, placeB), withdraw(3, 1), leave(4, placeC)}, "4", ""},
		{"it is about something else", []record.Order{{Number: 1, Kind: record.OrderPause}, withdraw(2, 1), leave(3, placeA), leave(4, placeB)}, "2", ""},
	} {
		w := wrecked()
		w.Orders = tc.orders
		_, err := checkWithdraw(newBook(w.View, now), tc.number)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}
