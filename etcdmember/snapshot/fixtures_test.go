package snapshot

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Three places a, b, c with instances 101, 102, 103, and an epoch that b has seeded.
var (
	t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	pa = replica.Place{Zone: "us-central1-a", Name: "m-a"}
	pb = replica.Place{Zone: "us-central1-b", Name: "m-b"}
	pc = replica.Place{Zone: "us-central1-c", Name: "m-c"}
)

func entry(p replica.Place, instance string, id record.MemberID) table.Member {
	return table.Member{ID: id, Name: p.String() + "." + instance, PeerURLs: []string{table.PeerURL(p.DNSName("demo"))}}
}

// seeded is the record with the first epoch formed.
func seeded() record.View {
	return record.View{Epochs: []record.Epoch{{Number: 1, Claim: &record.Claim{Token: "t1", MaxLearners: 4,
		Seeder: record.Seeder{Place: pb, InstanceID: "102"}, Source: record.Source{Kind: record.SourceEmpty}},
		Outcome: &record.Outcome{Formed: &record.Formed{ClusterID: 0xc1, MemberID: 0xb1}}}}}
}

// served is a real member that seeds and serves in this process until the test ends, and its certificates.
func served(t *testing.T) (cfg member.Config, files certs.Files, status table.MemberStatus) {
	t.Helper()
	r := etcdtest.NewReplica(t)
	cfg = member.ConfigFor(r.Me, r.Cluster, r.Files, r.RunDir)
	cfg.New, cfg.Token = true, "token"
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- member.Run(ctx, cfg, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() { stop(); <-done })
	etcdtest.Eventually(t, "the member serves", func() bool {
		var err error
		status, err = member.ReadStatus(t.Context(), cfg.StatusSocket)
		return err == nil && status.Ready
	})
	return cfg, r.Files, status
}
