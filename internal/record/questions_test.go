package record

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

var (
	placeOne = replica.Place{Zone: "z-a", Name: "m1"}
	placeTwo = replica.Place{Zone: "z-b", Name: "m2"}
)

// threeEpochs is a record in which epoch 1 was abandoned, epoch 2 formed and closed, and epoch 3 claimed.
func threeEpochs() View {
	pending := func(k uint64) Incarnation { return Incarnation{Place: placeTwo, Number: k} }
	confirmed := func(p replica.Place) Incarnation {
		return Incarnation{Place: p, Number: 1, Started: &Started{Epoch: 2}}
	}
	return View{
		Epochs: []Epoch{
			{Number: 1, Claim: &Claim{}, Outcome: &Outcome{Abandoned: &Abandoned{}}},
			{Number: 2, Claim: &Claim{}, Outcome: &Outcome{Formed: &Formed{ClusterID: 0xc, MemberID: 0xa}},
				Closed: &Closed{}},
			{Number: 3, Claim: &Claim{}},
		},
		Replicas: map[replica.Place][]Incarnation{
			placeOne: {confirmed(placeOne)},
			placeTwo: {confirmed(placeTwo), pending(9), pending(10)},
		},
	}
}

func TestQuestionsOfAView(t *testing.T) {
	full := threeEpochs() // 1 abandoned, 2 formed and closed, 3 claimed
	formed := threeEpochs()
	formed.Epochs[2].Outcome = &Outcome{Formed: &Formed{ClusterID: 0xd, MemberID: 0xb}}
	for name, c := range map[string]struct {
		v                            View
		newest, formed, open, second uint64
	}{
		"nothing":                      {View{}, 0, 0, 0, 0},
		"only abandoned":               {View{Epochs: full.Epochs[:1]}, 1, 0, 0, 0},
		"formed and closed":            {View{Epochs: full.Epochs[:2]}, 2, 2, 0, 2},
		"closed, and the next claimed": {full, 3, 2, 0, 2},
		"closed, and the next formed":  {formed, 3, 3, 3, 2},
		"a claim above a formed epoch": {View{Epochs: []Epoch{formed.Epochs[2], {Number: 4}}}, 4, 3, 0, 0},
		"what lies below it is lost":   {View{Epochs: full.Epochs[1:]}, 3, 2, 0, 2},
	} {
		got := []uint64{NumberOf(c.v.Newest()), NumberOf(c.v.NewestFormed()), NumberOf(c.v.Open()),
			NumberOf(c.v.Epoch(2))}
		if want := []uint64{c.newest, c.formed, c.open, c.second}; !slices.Equal(got, want) {
			t.Errorf("%s: newest, newest formed, open, number 2: %d, want %d", name, got, want)
		}
	}
	if (*Epoch)(nil).Formed() != nil || full.Epochs[0].Formed() != nil || full.Epochs[1].Formed().ClusterID != 0xc ||
		full.Epochs[2].Formed() != nil {
		t.Error("which epochs were formed")
	}
	if e := formed.OfCluster(0xc); e != &formed.Epochs[1] {
		t.Errorf("epoch of cluster c: %d", NumberOf(e))
	}
	formed.Epochs[1].Outcome = &Outcome{Formed: &Formed{}}
	for _, id := range []MemberID{0, 0xc, 0xa} {
		if e := formed.OfCluster(id); e != nil {
			t.Errorf("epoch of cluster %s: %d", id, e.Number)
		}
	}
}

func TestQuestionsAboutPlaces(t *testing.T) {
	v, nowhere := threeEpochs(), replica.Place{Zone: "z", Name: "n"}
	if got := v.Places(); !slices.Equal(got, []replica.Place{placeOne, placeTwo}) {
		t.Errorf("places %v", got)
	}
	numbers := func(list []Incarnation) (out []uint64) {
		for _, i := range list {
			out = append(out, i.Number)
		}
		return out
	}
	if got := numbers(v.Current(placeTwo)); !slices.Equal(got, []uint64{1, 9, 10}) {
		t.Errorf("current %d", got)
	}
	v.Replicas[placeTwo][1].Started = &Started{}
	if got := numbers(v.Current(placeTwo)); !slices.Equal(got, []uint64{9, 10}) {
		t.Errorf("current once 9 is confirmed: %d", got)
	}
	v.Replicas[placeOne][0].Started = nil
	if got := numbers(v.Current(placeOne)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("current where none is confirmed: %d", got)
	}
	if i := v.Last(placeTwo); i == nil || i.Number != 10 {
		t.Errorf("last %v", i)
	}
	if i := v.Incarnation(placeTwo, 9); i != &v.Replicas[placeTwo][1] {
		t.Errorf("number 9: %v", i)
	}
	if v.Incarnation(placeTwo, 2) != nil || v.Last(nowhere) != nil || v.Current(nowhere) != nil {
		t.Error("there is none")
	}
}
