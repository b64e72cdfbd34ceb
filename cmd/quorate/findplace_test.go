package main

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

func TestAReplicaIsFoundByWhatPeopleCallIt(t *testing.T) {
	place := func(zone, name string) replica.Place { return replica.Place{Zone: "us-central1-" + zone, Name: name} }
	master, other := place("a", "master-a"), place("b", "master-b")
	batches := []report.Batch{{Place: master, InstanceID: "100"}, {Place: master, InstanceID: "101"},
		{Place: other, InstanceID: "200"}, {Place: place("b", "twin")}, {Place: place("c", "twin")}}
	v := record.View{Replicas: map[replica.Place][]record.Incarnation{
		place("c", "long-gone"): {{Place: place("c", "long-gone"), InstanceID: "99"}}}}
	for name, want := range map[string]string{
		"master-a": "us-central1-a.master-a", "Master-A": "us-central1-a.master-a",
		"US-central1-b.master-b": "us-central1-b.master-b", "101": "us-central1-a.master-a",
		"99": "us-central1-c.long-gone", "long-gone": "us-central1-c.long-gone",
	} {
		if p, err := findPlace(name, batches, v); err != nil || p.String() != want {
			t.Errorf("%s: %s, %v; want %s", name, p, err, want)
		}
	}
	const known = "; known are master-a, master-b, us-central1-b.twin, long-gone and us-central1-c.twin"
	for name, want := range map[string]string{
		"twin":     "several are called that: name one of us-central1-b.twin or us-central1-c.twin",
		"mastr-b":  "neither the record nor an event has it (did you mean master-b?)" + known,
		"master-z": "neither the record nor an event has it" + known, // as near to one as to another
		"100x":     "neither the record nor an event has it" + known,
	} {
		if p, err := findPlace(name, batches, v); err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%s: %s, %v; want %s", name, p, err, want)
		}
	}
}

func TestWhereFewReplicasAreKnownTheyAreNamed(t *testing.T) {
	for want, batches := range map[string][]report.Batch{
		"; no replica is known yet": nil,
		"; known is master-a":       {{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}}},
	} {
		if _, err := findPlace("x", batches, record.View{}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
