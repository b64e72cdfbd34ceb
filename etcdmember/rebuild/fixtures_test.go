package rebuild

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
)

// Three places a, b, c in the cluster demo.
var (
	t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	pa = replica.Place{Zone: "us-central1-a", Name: "m-a"}
	pb = replica.Place{Zone: "us-central1-b", Name: "m-b"}
	pc = replica.Place{Zone: "us-central1-c", Name: "m-c"}
)

const testCluster = "demo"

// blank is a poll of a: the instances 101, 102 and 103 of a cluster whose disks all exist.
func blank() table.Facts {
	f := table.Facts{Now: t0, Cluster: testCluster, DiskID: "d1", Disk: table.DiskFacts{Wanted: "data", Mounted: true},
		Me:     replica.Identity{Place: pa, InstanceID: "101", BootID: "boot1", ProjectNumber: "7"},
		Policy: table.Policy{Replicas: 3}}
	for i, l := range []*table.Listing{&f.Compute.First, &f.Compute.Second} {
		*l = table.Listing{Disks: []string{"d1", "d2", "d3"}, Time: t0.Add(time.Duration(10*i-12) * time.Second)}
		for n, p := range []replica.Place{pa, pb, pc} {
			l.Instances = append(l.Instances, table.Instance{Place: p, InstanceID: fmt.Sprint(101 + n), Status: "RUNNING"})
		}
	}
	f.Compute.Runs = map[string]table.Run{}
	for _, id := range []string{"201", "202", "203"} {
		f.Compute.Runs[id] = table.Run{Kind: table.RunAbsent, Since: t0.Add(-time.Hour)}
	}
	return f
}
