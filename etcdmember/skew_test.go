package etcdmember

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/acts"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// What compares a time of the record, which is by another machine's clock, with the own one, and is not in the walks
// with clocks an hour apart: DESIGN.md has the list.

// A master was deleted, its voter is still listed, and a new VM has its address. Whatever the clocks of the two say,
// the name of the new one has the address in the hosts file of a third, and that of the dead one leads nowhere.
func TestTheYoungerVMHasTheAddressWhateverTheClocksSay(t *testing.T) {
	shared := netip.MustParseAddr("10.0.0.7")
	for name, d := range clocks {
		t.Run(name, func(t *testing.T) {
			f := three()
			f.Record.Replicas[pb] = []record.Incarnation{{Place: pb, Number: 1, InstanceID: "102",
				Addresses: []netip.Addr{shared}, Time: t0}}
			me := f.Me
			me.Place, me.InstanceID, me.Addresses = pc, "103", []netip.Addr{shared}
			mine := record.Incarnation{Place: pc, Number: 1, InstanceID: "103", Addresses: me.Addresses,
				Time: acts.AfterOthers(f.Record, me, t0.Add(time.Minute).Add(d))}
			f.Record.Replicas[pc] = []record.Incarnation{mine}
			third := Config{Me: f.Me, Cluster: &replica.Cluster{Name: testCluster},
				HostsFile: filepath.Join(t.TempDir(), "hosts"),
				Log:       slog.New(slog.DiscardHandler)}
			keepHosts(third, f.Record)
			text, err := os.ReadFile(third.HostsFile)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), shared.String()+" "+pc.DNSName(testCluster)) ||
				strings.Contains(string(text), shared.String()+" "+pb.DNSName(testCluster)) {
				t.Errorf("%s", text)
			}
		})
	}
}

// savers are two VMs, the second of which was an hour ahead.
type savers struct{ Record }

func (savers) Snapshots(context.Context) ([]record.Snapshot, error) {
	return []record.Snapshot{{Name: "1/9-x", Epoch: 1, Revision: 9, Time: t0}, {Name: "1/8-x", Epoch: 1, Revision: 8,
		Time: t0.Add(time.Hour)}}, nil
}

func TestTheNewestSnapshotToRestoreIsTheOneOfTheHighestRevision(t *testing.T) {
	o := &observer{cfg: Config{Record: savers{}}}
	f := three()
	f.Agent, f.Directory, f.Policy.Replicas = table.AgentFile{}, table.Directory{}, 1
	o.sources(t.Context(), &f)
	if got := f.Policy.Snapshot; got == nil || got.Name != "1/9-x" {
		t.Errorf("%+v", got)
	}
}
