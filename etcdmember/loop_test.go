package etcdmember

import (
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

func TestAStepThatFailsIsTriedMoreAndMoreRarely(t *testing.T) {
	for _, c := range []struct {
		f    *failure
		want time.Duration
	}{
		{nil, errorPause}, // its context was done
		{&failure{act: table.ActClaim, tries: 1}, bootPause},
		{&failure{act: table.ActClaim, tries: 3}, 4 * bootPause},
		{&failure{act: table.ActClaim, tries: 4}, errorPause},
		{&failure{act: table.ActClaim, tries: 5000}, errorPause},
		{&failure{act: table.ActRestore, tries: 1}, 2 * errorPause},
		{&failure{act: table.ActRestore, tries: 3}, 8 * errorPause},
		{&failure{act: table.ActRestore, tries: 7}, restorePause},
		{&failure{act: table.ActRestore, tries: 5000}, restorePause},
	} {
		if got := pauseAfterFailed(c.f); got != c.want {
			t.Errorf("after %+v: %s, want %s", c.f, got, c.want)
		}
	}
}
