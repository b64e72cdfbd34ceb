package etcdmember

import (
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

func TestAStepThatFailsIsTriedMoreAndMoreRarely(t *testing.T) {
	for _, c := range []struct {
		f    table.Failure
		want time.Duration
	}{
		{table.Failure{}, errorPause}, // its context was done
		{table.Failure{Act: table.ActClaim, Times: 1}, bootPause},
		{table.Failure{Act: table.ActClaim, Times: 3}, 4 * bootPause},
		{table.Failure{Act: table.ActClaim, Times: 4}, errorPause},
		{table.Failure{Act: table.ActClaim, Times: 5000}, errorPause},
		{table.Failure{Act: table.ActRestore, Times: 1}, 2 * errorPause},
		{table.Failure{Act: table.ActRestore, Times: 3}, 8 * errorPause},
		{table.Failure{Act: table.ActRestore, Times: 7}, restorePause},
		{table.Failure{Act: table.ActRestore, Times: 5000}, restorePause},
	} {
		if got := pauseAfterFailed(c.f); got != c.want {
			t.Errorf("after %+v: %s, want %s", c.f, got, c.want)
		}
	}
}
