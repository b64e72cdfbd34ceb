package etcdmember

import (
	"testing"
	"time"
)

func TestAStepThatFailsIsTriedMoreAndMoreRarely(t *testing.T) {
	for _, c := range []struct {
		f    *failure
		want time.Duration
	}{
		{nil, errorPause}, // its context was done
		{&failure{act: ActClaim, tries: 1}, bootPause},
		{&failure{act: ActClaim, tries: 3}, 4 * bootPause},
		{&failure{act: ActClaim, tries: 4}, errorPause},
		{&failure{act: ActClaim, tries: 5000}, errorPause},
		{&failure{act: ActRestore, tries: 1}, 2 * errorPause},
		{&failure{act: ActRestore, tries: 3}, 8 * errorPause},
		{&failure{act: ActRestore, tries: 7}, restorePause},
		{&failure{act: ActRestore, tries: 5000}, restorePause},
	} {
		if got := pauseAfterFailed(c.f); got != c.want {
			t.Errorf("after %+v: %s, want %s", c.f, got, c.want)
		}
	}
}
