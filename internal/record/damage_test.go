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

// What comes after an outcome proves that the epoch was formed. The seeder's own incarnation comes before it.
func TestWhatProvesThatAnEpochWasFormed(t *testing.T) {
	other := placeTwo
	started := func(p replica.Place, epoch uint64) func(*View) {
		return func(v *View) {
			v.Replicas = map[replica.Place][]Incarnation{p: {{Place: p, Number: 4}, {Place: p, Number: 5,
				Started: &Started{Epoch: epoch}}}}
		}
	}
	for want, add := range map[string]func(*View){
		"it was closed": func(v *View) { v.Epochs[0].Closed = &Closed{} },
		"its claim was rebuilt, which comes after the outcome": func(v *View) {
			v.Epochs[0].Claim.Source.Kind = SourceRebuilt
		},
		"stopped/ names " + other.String(): func(v *View) { v.Epochs[0].Stopped = []Stopped{{Place: other}} },
		"a snapshot of it":                 func(v *View) { v.Snapshots = []uint64{7} },
		"a mark of member " + MemberID(0xb1).String(): func(v *View) {
			v.Marks = map[MemberID]Mark{0xa1: {Epoch: 6}, 0xb1: {Epoch: 7}}
		},
		StartedKey(other, 5): started(other, 7),
	} {
		v := View{Epochs: []Epoch{{Number: 7, Claim: &Claim{Seeder: Seeder{Place: placeOne}}}}}
		if got := v.WasFormed(&v.Epochs[0]); got != "" {
			t.Errorf("a claim alone: %s", got)
		}
		if add(&v); v.WasFormed(&v.Epochs[0]) != want {
			t.Errorf("%q, want %q", v.WasFormed(&v.Epochs[0]), want)
		}
	}
	for name, add := range map[string]func(*View){
		"the seeder's own incarnation": started(placeOne, 7),
		"one of another epoch":         started(other, 6),
		"a snapshot of another epoch":  func(v *View) { v.Snapshots = []uint64{6} },
	} {
		v := View{Epochs: []Epoch{{Number: 7, Claim: &Claim{Seeder: Seeder{Place: placeOne}}}}}
		if add(&v); v.WasFormed(&v.Epochs[0]) != "" {
			t.Errorf("%s: %s", name, v.WasFormed(&v.Epochs[0]))
		}
	}
}
