package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
)

func TestAListIsOfAllThatIsKnown(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		w.mu.Lock()
		w.disks[zones[0]+"/spare"] = &gce.FleetDisk{Zone: zones[0], Name: "spare", ID: "77"}
		p := place(2)
		w.orders = append(w.orders, record.Order{Number: 2, Kind: record.OrderLeave, Place: &p})
		delete(w.vms, place(1))
		w.mu.Unlock()
		time.Sleep(3 * time.Second)
		r, err := fleetOf(w).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		l := r.List()
		for _, x := range l.Replicas {
			got = append(got, fmt.Sprint(x.Name, " ", x.VM, " ", x.Role, " ", x.Leads, " ", x.Ready, " ", x.Order, " ",
				x.Image == oldImage, " ", x.DataDisk))
		}
		want := "master-a RUNNING voter true true 0 true master-a-data; master-b  voter false false 0 false ; " +
			"master-c RUNNING voter false true 2 true master-c-data"
		if strings.Join(got, "; ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
		}
		if len(l.SpareDisks) == 0 || l.SpareDisks[0] != (fleet.ListedDisk{Name: "spare", Zone: zones[0], ID: "77"}) {
			t.Errorf("spare disks: %+v", l.SpareDisks)
		}
	})
}
