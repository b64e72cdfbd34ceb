package record

import (
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

// Each object is written after the inception: whichever is there, a cluster had begun.
func TestAnyObjectProvesThatThereWasAnInception(t *testing.T) {
	for name, v := range map[string]View{
		"an epoch":     {Epochs: []Epoch{{Number: 1}}},
		"a replica":    {Replicas: map[replica.Place][]Incarnation{placeOne: {{Place: placeOne, Number: 1}}}},
		"a mark":       {Marks: map[MemberID]Mark{1: {MemberID: 1}}},
		"an order":     {Orders: []Order{{Number: 1}}},
		"a bundle":     {Bundle: 1},
		"a snapshot":   {Snapshots: []uint64{1}},
		"all together": {Epochs: []Epoch{{Number: 1}}, Bundle: 1},
	} {
		if got := v.inceptionDamage(); !v.LostInception() || len(got) != 1 || got[0].Level != Fail {
			t.Errorf("%s: lost %t, %v", name, v.LostInception(), got)
		}
		if v.Inception = (&Inception{Name: "c1"}); v.LostInception() {
			t.Errorf("%s and the inception: lost", name)
		}
	}
	if !(Remains{Orphans: []Orphan{{Number: 1}}}).LostInception() {
		t.Error("an orphan: not lost")
	}
	if (View{}).LostInception() || (Remains{}).LostInception() {
		t.Error("nothing at all: lost")
	}
}
