package datadisk

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestADiskIsNearlyFullByItsSize(t *testing.T) {
	const mib, gib = int64(1 << 20), int64(1 << 30)
	for _, c := range []struct {
		free, total int64
		was, want   bool
	}{
		{0, gib, false, true},
		{127 * mib, gib, false, true}, // a twentieth is less than etcd's log takes
		{128 * mib, gib, false, false},
		{128 * mib, gib, true, true}, // it goes up and down with each snapshot
		{160 * mib, gib, true, false},
		{500 * mib, 10 * gib, false, true},
		{513 * mib, 10 * gib, false, false},
		{3 * gib, 100 * gib, false, false}, // less than a twentieth, and plenty
		{2*gib - 1, 100 * gib, false, true},
	} {
		if got := isNearlyFull(c.free, c.total, c.was); got != c.want {
			t.Errorf("%d MiB of %d, was %v: %v", c.free/mib, c.total/mib, c.was, got)
		}
	}
}

// A quiet member on a full disk goes on for hours, and fails at the worst time: this says so before.
func TestADiskThatFillsIsAWaitUntilThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, dir := diskIn(t)
		var free int64
		var fault error
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.watchRoom(ctx, dir, func() (int64, int64, error) { return free, 10 << 30, fault })
		}()
		for _, step := range []struct {
			free  int64
			fault error
			want  string
		}{
			{5 << 30, nil, ""},
			{400 << 20, nil, "3 % of its 10240 MiB are free"},
			{390 << 20, nil, "3 % of its 10240 MiB are free"},
			{450 << 20, nil, "3 % of its 10240 MiB are free"}, // no line in the log for each file that comes and goes
			{0, nil, "0 % of its 10240 MiB are free"},
			{9 << 30, fmt.Errorf("no answer"), "0 % of its 10240 MiB are free"},
			{600 << 20, nil, "0 % of its 10240 MiB are free"},
			{700 << 20, nil, ""},
			{100 << 20, nil, "0 % of its 10240 MiB are free"},
		} {
			free, fault = step.free, step.fault
			time.Sleep(roomPeriod)
			synctest.Wait()
			got := ""
			for _, w := range d.tracker.All() {
				got += w.Name + ": " + w.Reason
			}
			if (step.want == "") != (got == "") || !strings.Contains(got, step.want) {
				t.Errorf("%d MiB are free: %q, want %q", step.free>>20, got, step.want)
			}
		}
		cancel()
		<-done
	})
}
