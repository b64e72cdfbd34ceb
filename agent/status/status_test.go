package status

import (
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/etcdmember/explain"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

var update = flag.Bool("update", false, "write the golden file anew")

// The JSON keys of the status are an interface: scripts and the demo's checks read them.
func TestTheKeysOfTheStatus(t *testing.T) {
	lag, now := uint64(3), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := Status{
		Replica: Replica{Identity: replica.Identity{Place: replica.Place{Zone: "z", Name: "n"}, InstanceID: "1",
			BootID: "b", Project: "p", ProjectNumber: "7",
			Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}, Phase: "keep", Since: now, Ready: true,
			Wanted: 3, Incarnation: 2, DiskID: "d1", DiskIDUnknown: true},
		Version: "v1", Boot: Boot{Phases: []PhaseTook{{"identity", 0.1}}, Ready: 2.5},
		Report: etcdmember.Report{
			Cluster: etcdmember.ClusterReport{Name: "demo", Epoch: 1, ID: "c1"},
			Etcd: etcdmember.EtcdReport{Member: "a1", Row: "running", LeaderRow: "44",
				Members: []etcdmember.MemberReport{
					{Name: "z.n.1", ID: "a1", Role: "voter", Leader: true, Started: true, Lag: &lag}},
				Database:    &table.Database{Bytes: 4 << 20, InUse: 3 << 20, Quota: 8 << 30},
				RecordRead:  &now,
				Steps:       []etcdmember.StepCount{{Act: table.ActSeed, Outcome: "done", Count: 1}},
				Explanation: &explain.Explanation{At: now, Found: []string{"f"}}},
		},
		Components: []supervisor.Status{{Name: "etcd", State: supervisor.Ready, Since: now, Restarts: 1, Reason: "r",
			PID: 7}},
		Leases: []Lease{{Name: "kube-scheduler", Holder: "n_1", Renewed: now, Age: 1.5,
			Component: "kube-scheduler", Role: "leader", Restarts: 1}},
		Certificates: []certs.Expiry{{Name: "etcd-peer", NotAfter: now}},
		Encryption:   &certs.Encryption{Resources: []string{"secrets"}, WritesWith: "g1", ReadsWith: []string{"g1"}},
		Kubelet: &kubelet.Status{
			Units: []kubelet.UnitStatus{{Unit: "kubelet.service", State: "hung", Reason: "r", Held: "h", Since: now,
				Counts: kubelet.Counts{Ended: 1, Restart: 2, Start: 3, Park: 4}}},
			Records: []kubelet.Record{{At: now, Unit: "kubelet.service", What: "restart", Cause: "hung", Reason: "r",
				Stacks: "s", Outcome: "o"}}},
		DataDisk: &datadisk.Size{Device: 50 << 30, FileSystem: 49 << 30, Free: 40 << 30},
		Blocked:  []replica.Wait{{Row: "19", Name: "seed-in-progress", Reason: "r", Since: now, Next: "n"}},
	}
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var read Status // it is plain data: who reads it has all of it
	if err := json.Unmarshal(got, &read); err != nil || !reflect.DeepEqual(read, s) {
		t.Errorf("%v: read\n%+v\nwritten\n%+v", err, read, s)
	}
	path := filepath.Join("testdata", "status.json")
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(want)) != string(got) {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}
