package member

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
)

// newTestMember is the configuration of a member that seeds, and its certificates.
func newTestMember(t *testing.T) (Config, certs.Files) {
	t.Helper()
	r := etcdtest.NewReplica(t)
	cfg := ConfigFor(r.Me, r.Cluster, r.Files, r.RunDir)
	cfg.New, cfg.Token = true, "token"
	return cfg, r.Files
}

func TestAMemberSeedsServesAndGoesOnFromItsDisk(t *testing.T) {
	cfg, files := newTestMember(t)
	log := slog.New(slog.DiscardHandler)
	for round := range 2 {
		for range table.UnusableEnds { // what it said before, until it had caught up with another leader
			WriteEnd(cfg.StatusSocket, cfg.Dir, outOfRange, time.Now())
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		begin := time.Now()
		go func() { done <- Run(ctx, cfg, log) }()
		s := waitReady(t, cfg.StatusSocket)
		t.Logf("round %d: ready after %s", round, time.Since(begin))
		etcdtest.Eventually(t, "what was said of a directory on which a member serves is forgotten", func() bool {
			_, err := os.Stat(endPath(cfg.StatusSocket))
			return os.IsNotExist(err)
		})
		if s.Leader != s.MemberID || s.MemberID == 0 || s.Learner {
			t.Errorf("a cluster of one has another leader: %+v", s)
		}
		// Nothing is new to who knows this; who knows something else is told at once.
		begin = time.Now()
		if got, err := AwaitNews(t.Context(), cfg.StatusSocket, News(s), 2*lookPeriod); err != nil ||
			News(got) != News(s) || time.Since(begin) < 2*lookPeriod {
			t.Errorf("no news after %s: %+v, %v", time.Since(begin), got, err)
		}
		begin = time.Now()
		if _, err := AwaitNews(t.Context(), cfg.StatusSocket, "else", time.Hour); err != nil ||
			time.Since(begin) > time.Minute {
			t.Errorf("news after %s: %v", time.Since(begin), err)
		}
		tlsConfig, err := certs.EtcdTLS(files)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Dial(cfg.DNSName, cfg.Address, tlsConfig)
		if err != nil {
			t.Fatal(err)
		}
		id, list, err := List(t.Context(), c)
		c.Close()
		if err != nil || id != s.ClusterID || len(list) != 1 || list[0].Name != cfg.Name ||
			list[0].PeerURLs[0] != table.PeerURL(cfg.DNSName) {
			t.Errorf("members: %v, %v, %v", id, list, err)
		}
		if err := HandOver(t.Context(), cfg.StatusSocket); err != nil {
			t.Errorf("a lone leader has nobody to hand over to, and that is no error: %v", err)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		d, err := datadir.Read(cfg.Dir)
		if err != nil || !d.Exists || d.OpenErr != nil || d.MemberID != s.MemberID || d.ClusterID != s.ClusterID ||
			d.LastIndex < d.Commit || d.Commit == 0 || d.LastTerm == 0 || d.LastTerm > d.Term {
			t.Errorf("the directory after the stop: %+v, %v", d, err)
		}
	}
}

// TestAMemberKilledBeforeItsDatabaseWasWritten: the database is written each tenth of a second, the log at once. Killed
// in between, a seed's log holds its own entry and its database does not.
func TestAMemberKilledBeforeItsDatabaseWasWritten(t *testing.T) {
	cfg, _ := newTestMember(t)
	for round := range 6 { // one start in two is too early to have read its own entry
		e, port, err := startMember(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		leadAlone(t.Context(), e, slog.New(slog.DiscardHandler))
		for memberStatus(e, false).Leader == 0 && time.Since(begin) < 10*time.Second {
			time.Sleep(time.Millisecond)
		}
		s := memberStatus(e, false)
		t.Logf("round %d: leads after %s", round, time.Since(begin))
		if s.Leader != s.MemberID || s.Learner || len(s.Members) != 1 {
			t.Errorf("round %d: %+v", round, s)
		}
		stopMember(e, port)
		cfg.New = false
		emptyDatabase(t, datadir.DatabaseFile(cfg.Dir))
	}
}

// emptyDatabase leaves the buckets and nothing in them.
func emptyDatabase(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		var names [][]byte
		_ = tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			names = append(names,
				slices.Clone(name))
			return nil
		})
		for _, name := range names {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func waitReady(t *testing.T, socket string) (s table.MemberStatus) {
	t.Helper()
	etcdtest.Eventually(t, "the member serves", func() bool {
		var err error
		s, err = ReadStatus(t.Context(), socket)
		return err == nil && s.Ready
	})
	return s
}

// etcd's own second try comes 5 s and two election time-outs after the first. To break off a start that waits for it
// would gain nothing.
func TestAStartIsBrokenOffLaterEachTimeButNeverAfterEtcdsOwnSecondTry(t *testing.T) {
	const secondTry = 7 * time.Second
	if first := stallPatience(0); first != firstStallPatience {
		t.Errorf("the first time after %s", first)
	}
	for n := 1; n < maxStalls; n++ {
		if p := stallPatience(n); p != 2*stallPatience(n-1) || p >= secondTry {
			t.Errorf("after %d stalls %s, after one less %s", n, p, stallPatience(n-1))
		}
	}
}

// One that joins and has its own publication in the database that it was sent will not hear of it any more. One that
// was published before has to wait for another.
func TestAStallIsKnownByThePublicationOrByPatience(t *testing.T) {
	waits := table.MemberStatus{Leader: 1, Applied: 5, Committed: 5}
	behind := table.MemberStatus{Leader: 1, Applied: 4, Committed: 5}
	serves := table.MemberStatus{Leader: 1, Applied: 5, Committed: 5, Ready: true}
	large := waits
	large.Database.InUse = soonRead
	for name, c := range map[string]struct {
		joins, published bool
		status           table.MemberStatus
		over             time.Duration // 0: never
	}{
		"it has caught up":                      {joins: true, status: waits, over: 450 * time.Millisecond},
		"its publication came with a database":  {joins: true, published: true, status: waits, over: 100 * time.Millisecond},
		"so it did, and others write all along": {joins: true, published: true, status: behind, over: 100 * time.Millisecond},
		"it came with a large database":         {joins: true, published: true, status: large, over: 450 * time.Millisecond},
		"it was published before":               {published: true, status: waits, over: 450 * time.Millisecond},
		"it is behind":                          {joins: true, status: behind},
		"it serves":                             {joins: true, published: true, status: serves},
	} {
		w := stallWatch{joins: c.joins, patience: firstStallPatience}
		begin, over := time.Now(), time.Duration(0)
		for d := time.Duration(0); d < time.Second && over == 0; d += statusPeriod {
			if w.over(begin.Add(d), c.status, c.published) {
				over = d
			}
		}
		if over != c.over {
			t.Errorf("%s: after %s, want %s", name, over, c.over)
		}
	}
	w := stallWatch{joins: true, patience: firstStallPatience}
	for n := range 100 { // it catches up again and again
		s := waits
		if n%5 == 0 {
			s = behind
		}
		if w.over(time.Unix(0, 0).Add(time.Duration(n)*statusPeriod), s, false) {
			t.Fatalf("it is broken off at look %d", n)
		}
	}
}

func TestMembersWithOneAddressAreNotStartedFrom(t *testing.T) {
	for urls, fits := range map[[2]string]bool{
		{"https://localhost:2380", "https://127.0.0.1:2380"}: false,
		{"https://localhost:2380", "https://127.0.0.2:2380"}: true,
	} {
		c := Config{InitialCluster: map[string]string{"a": urls[0], "b": urls[1]}}
		if err := c.apart(t.Context()); (err == nil) != fits {
			t.Errorf("%v: %v", urls, err)
		}
	}
}

// The child itself refuses to come back without a memory.
func TestAMemberThatHasRunDoesNotStartOnAnEmptyDirectory(t *testing.T) {
	cfg, _ := newTestMember(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg, slog.New(slog.DiscardHandler)) }()
	waitReady(t, cfg.StatusSocket)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	saved, err := LoadConfig(ConfigOf(cfg.StatusSocket))
	if err != nil || saved.New || saved.InitialCluster != nil {
		t.Errorf("the configuration still allows to make a directory: %+v, %v", saved, err)
	}
	saved.Dir = filepath.Join(t.TempDir(), "lost")
	if _, _, err := startMember(t.Context(), saved, slog.New(slog.DiscardHandler)); !errors.Is(err, errNoLog) {
		t.Errorf("it started: %v", err)
	}
	if _, err := os.Stat(saved.Dir); err == nil {
		t.Error("it made a directory")
	}
}

// Between the agent's look and the child's, the entry of a joining member was replaced: etcd would take the new one for
// itself.
func TestAJoiningMemberWantsTheEntryThatWasAddedForIt(t *testing.T) {
	list := []*membership.Member{
		{ID: 0xb1, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{"https://b:2380"}},
			Attributes: membership.Attributes{Name: "b"}},
		{ID: 0xa2, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{table.PeerURL("a")}, IsLearner: true}},
		{ID: 0xc3, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{"https://c:2380"}, IsLearner: true}},
	}
	cfg := Config{Name: "me", DNSName: "a", MemberID: 0xa2}
	own, err := cfg.takeList(list)
	want := map[string]string{"me": table.PeerURL("a"), "member-b1": "https://b:2380", NotStarted +
		"c3": "https://c:2380"}
	if err != nil || own != 0xa2 || !maps.Equal(cfg.InitialCluster, want) {
		t.Errorf("%s, %v, %v", own, cfg.InitialCluster, err)
	}
	cfg = Config{Name: "me", DNSName: "a", MemberID: 0xa1}
	if _, err := cfg.takeList(list); err == nil || !strings.Contains(err.Error(), "a1 was added for this disk") ||
		cfg.InitialCluster != nil {
		t.Errorf("another's entry: %v, %v", err, cfg.InitialCluster)
	}
}
