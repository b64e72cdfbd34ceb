package restoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
)

// followPeriod is the time between two checks of how far a restore has come.
const followPeriod = 2 * time.Second

// Follow shows how far the restore that ends an epoch has come until the next epoch is formed, and has VMs stopped that
// it waits for, unless stops is nil.
func Follow(ctx context.Context, out io.Writer, from Record, ends uint64, stops *Stops) error {
	before, printed := "", time.Time{}
	for {
		v, err := from.View(ctx)
		text, detail := "", ""
		var r order.Restore
		var p order.Progress
		if err == nil {
			r, p = order.Follow(v, ends, time.Now())
			text, detail = progressText(r, p)
		} else {
			text = "The record cannot be read: " + err.Error()
		}
		if text == "" {
			return errNoOrder
		}
		if text != before || detail != "" && time.Since(printed) >= detailPeriod {
			terminal.PrintText(out, "", strings.TrimSpace(text+" "+detail))
			before, printed = text, time.Now()
		}
		if err == nil && stops != nil {
			stops.check(ctx, out, r, p, time.Now())
		}
		if p.Stage == order.StageFormed {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no longer following: %w; the order stays, and running the command again goes on "+
				"following it", context.Cause(ctx))
		case <-time.After(followPeriod):
		}
	}
}

// detailPeriod is the time between two lines of who is waited for: the ages in it change all the time.
const detailPeriod = 30 * time.Second

// errNoOrder says that what was followed is no longer ordered.
var errNoOrder = errors.New("no order to restore is in force any more: it was withdrawn before anything ended")
