package supervisor

import "testing"

func TestOnlyWhatIsDifferentWakesThoseWhoWait(t *testing.T) {
	b := newBoard()
	woken := func(st Status, exit *Exit) bool {
		changed := b.Changed()
		b.write(st, exit)
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	ready := Status{Name: "it", State: Ready}
	if !woken(ready, nil) {
		t.Error("a new process wakes nobody")
	}
	if woken(ready, nil) {
		t.Error("a status that is the same wakes those who wait: a process that waits would spin")
	}
	if !woken(ready, &Exit{Run: 7}) || b.exits["it"].Run != 7 {
		t.Errorf("an exit with the same status is lost: %+v", b.exits)
	}
	if !woken(Status{Name: "it", State: Stopped}, nil) {
		t.Error("another state wakes nobody")
	}
}
