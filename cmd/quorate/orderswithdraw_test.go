package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/record"
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
