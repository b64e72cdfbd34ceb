package etcdmember

import (
	"testing"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

func TestASourcesEpochIsWhatItsLogOrItsNameSays(t *testing.T) {
	f := three()
	last(&f).Closed = &record.Closed{}
	claim(&f, 2, "t2", pa, "101", record.Source{})
	form(&f, 0xc2, 0xa2)
	f.Directory.ClusterID = 0xc2
	f.Directory.Archives = []table.Archive{{Name: "x", ClusterID: 0xc1}}
	f.Snapshots = []record.Snapshot{{Name: "1/7-t", Epoch: 1}}
	directory := record.Source{Kind: record.SourceDirectory}
	for name, c := range map[string]struct {
		p    table.Plan
		want uint64
	}{
		"the directory":          {table.Plan{Source: directory}, 2},
		"an archive":             {table.Plan{Source: directory, Archive: "x"}, 1},
		"an archive of no epoch": {table.Plan{Source: directory, Archive: "y"}, 0},
		"a snapshot": {table.Plan{Source: record.Source{Kind: record.SourceSnapshot, Snapshot: "1/7-t"}},
			1},
		"one that is not listed": {table.Plan{Source: record.Source{Kind: record.SourceSnapshot, Snapshot: "x"}}, 0},
	} {
		if got := sourceEpoch(f, c.p); got != c.want {
			t.Errorf("%s: epoch %d, want %d", name, got, c.want)
		}
	}
}
