package agent

import (
	"testing"

	"github.com/quorate/quorate/etcdmember"
)

func TestTheWaitForRoomStandsFirst(t *testing.T) {
	waits := []Blocked{{Name: "snapshot-overdue"}, {Name: "paused"}, {Name: etcdmember.NoRoom}, {Name: "corrupt"}}
	roomFirst(waits)
	got := ""
	for _, b := range waits {
		got += b.Name + " "
	}
	if got != "no-room snapshot-overdue paused corrupt " {
		t.Error(got)
	}
}
