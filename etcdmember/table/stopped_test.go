package table_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The agents and the commands have one rule for who has stopped by the record alone.
func TestWhoHasNotSaidThatItStopped(t *testing.T) {
	a, b := replica.Place{Zone: "z-a", Name: "a"}, replica.Place{Zone: "z-b", Name: "b"}
	took := func(p replica.Place, number uint64, instance string, epoch uint64) record.Incarnation {
		return record.Incarnation{Place: p, Number: number, InstanceID: instance, Epoch: epoch}
	}
	said := func(p replica.Place, number uint64, instance string) record.Stopped {
		return record.Stopped{Place: p, Incarnation: number, InstanceID: instance}
	}
	for _, tc := range []struct {
		name    string
		of      []record.Incarnation // of b; a has 101
		stopped []record.Stopped
		silent  []string
		want    string
	}{
		{"the restorer says so itself", nil, nil, nil, ""},
		{"another has not", []record.Incarnation{took(b, 1, "102", 2)}, nil, nil, "b.1"},
		{"it has", []record.Incarnation{took(b, 1, "102", 2)}, []record.Stopped{said(b, 1, "102")}, nil, ""},
		{"by a version that did not name itself", []record.Incarnation{took(b, 1, "102", 2)},
			[]record.Stopped{said(b, 1, "")}, nil, ""},
		{"another has said so for it", []record.Incarnation{took(b, 1, "102", 2)}, []record.Stopped{said(b, 1, "9")},
			nil, "b.1"},
		{"a person has said so", []record.Incarnation{took(b, 1, "102", 2)}, nil, []string{"102"}, ""},
		{"it has said so, and went on since", []record.Incarnation{took(b, 1, "102", 2), took(b, 2, "102", 2)},
			[]record.Stopped{said(b, 1, "102")}, nil, "b.2"},
		{"its last incarnation speaks for it", []record.Incarnation{took(b, 1, "102", 2), took(b, 2, "102", 2)},
			[]record.Stopped{said(b, 2, "102")}, nil, ""},
		{"the VM before it has not", []record.Incarnation{took(b, 1, "102", 2), took(b, 2, "202", 2)},
			[]record.Stopped{said(b, 2, "202")}, nil, "b.1"},
		{"neither, the newest first", []record.Incarnation{took(b, 1, "102", 2), took(b, 2, "202", 2)}, nil, nil,
			"b.2 b.1"},
		{"a VM of another epoch", []record.Incarnation{took(b, 1, "102", 1), took(b, 2, "202", 3)}, nil, nil, ""},
	} {
		v := record.View{Replicas: map[replica.Place][]record.Incarnation{a: {took(a, 1, "101", 2)}}}
		if tc.of != nil {
			v.Replicas[b] = tc.of
		}
		var got []string
		for _, i := range table.NotStopped(v, &record.Epoch{Number: 2, Stopped: tc.stopped}, tc.silent, "101") {
			got = append(got, i.Place.Name+"."+string(rune('0'+i.Number)))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// What `restore --stop-vms` has noted proves a stop for as long as nothing began after it.
func TestANotedStopOfAVM(t *testing.T) {
	at := func(m int) time.Time { return time.Date(2026, 1, 2, 3, m, 0, 0, time.UTC) }
	restore := func(number, ends uint64, minute int) record.Order {
		return record.Order{Number: number, Kind: record.OrderRestore, Restore: &record.RestoreOrder{Ends: ends},
			VMStops: map[string]record.VMStop{"102": {InstanceID: "102", Written: at(minute)}}}
	}
	for _, tc := range []struct {
		name   string
		orders []record.Order
		began  int
		want   time.Time // zero: none counts
	}{
		{"it was stopped", []record.Order{restore(1, 2, 5)}, 4, at(5)},
		{"it has begun since", []record.Order{restore(1, 2, 5)}, 6, time.Time{}},
		{"for another epoch", []record.Order{restore(1, 1, 5)}, 4, time.Time{}},
		{"for an order that is superseded", []record.Order{restore(1, 2, 5), restore(2, 2, 3)}, 1, at(5)},
		{"for one that was withdrawn", []record.Order{restore(1, 2, 5),
			{Number: 2, Kind: record.OrderWithdraw, Withdraws: 1}}, 4, time.Time{}},
		{"for none", nil, 4, time.Time{}},
	} {
		i := record.Incarnation{InstanceID: "102", Epoch: 2, Written: at(tc.began)}
		got, ok := table.OrdersOf(slices.Clone(tc.orders), 2, at(9)).VMStopped(i, 2)
		if !got.Equal(tc.want) || ok == tc.want.IsZero() {
			t.Errorf("%s: %s %t, want %s", tc.name, got, ok, tc.want)
		}
	}
}
