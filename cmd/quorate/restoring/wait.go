package restoring

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
)

// UntilSilent waits until nothing shows any more that members of the epoch serve, which takes a minute after a loss;
// not where that is not asked, or an order is in force. noWait: it fails instead. Nothing is written meanwhile.
func UntilSilent(ctx context.Context, out io.Writer, from Record, r order.Restore, wish order.Wish,
	noWait bool) (order.Restore, error) {
	why, left := r.HeldBack(wish)
	switch {
	case why == "":
		return r, nil
	case noWait:
		return r, fmt.Errorf("%s\nIf it has lost its quorum since, try again in %s. %s", why, left, order.EndLiving)
	}
	if _, err := r.Choose(wish); err != nil { // that is refused after the wait, too
		return r, err
	}
	terminal.PrintText(out, "",
		why+" If it has lost its quorum since, that is sure once no member has gone on for a minute: "+
			"this command waits for it. Nothing is written before.")
	line := &terminal.Countdown{Out: out}
	defer line.End()
	advances := order.NewAdvances(r.Record)
	for begin := time.Now(); why != ""; {
		line.Show(time.Now(), fmt.Sprintf("Waiting: another %s without a sign of life. ^C ends this with nothing "+
			"written.", left))
		select {
		case <-ctx.Done():
			return r, fmt.Errorf("no longer waiting: %w; nothing was written", context.Cause(ctx))
		case <-time.After(time.Second):
		}
		r.Now = time.Now()
		if r.Now.Sub(begin) >= followPeriod {
			var err error
			if r, err = Read(ctx, from, r.Now); err != nil {
				return r, err
			}
			begin = r.Now
		}
		if err := advances.See(r); err != nil {
			return r, err
		}
		why, left = r.HeldBack(wish)
	}
	return r, nil
}
