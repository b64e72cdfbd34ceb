package etcdmember

import (
	"testing"
	"time"
)

func TestARestoreThatFailsIsTriedMoreAndMoreRarely(t *testing.T) {
	for _, c := range []struct {
		f    *failure
		want time.Duration
	}{
		{nil, errorPause}, // its context was done
		{&failure{act: ActClaim, tries: 50}, errorPause},
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
