package etcdmember

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
)

// onlyHosts is what `quorate run-etcd` does first, for members that run in the test's own process.
var onlyHosts = sync.OnceFunc(func() { net.DefaultResolver = hosts.Resolver(hosts.Path) })

// newTestMember makes certificates for a replica on loopback and the configuration of its member.
func newTestMember(t *testing.T) (MemberConfig, certs.Files) {
	t.Helper()
	onlyHosts()
	dir := t.TempDir()
	c, err := replica.Load(replica.Source{Name: "test", Data: []byte(`
apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: test
endpoint: {externalIP: 203.0.113.7}
record: {url: "gs://record?endpoint=http://192.0.2.1"}
seal: {key: "base64key://c21hbGwga2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMuLi4="}
`)})
	if err != nil {
		t.Fatal(err)
	}
	id := replica.Identity{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, InstanceID: "1",
		Project: "p", Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.9")}}
	files := certs.Files{Dir: filepath.Join(dir, "pki"), Volatile: filepath.Join(dir, "volatile")}
	b, err := certs.NewBundle("uid", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{files.Dir, files.Volatile} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := certs.Ensure(certs.Request{Files: files, Bundle: b, ClusterUID: "uid", Identity: id, Cluster: c,
		Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	m := ownMember{cfg: Config{Me: id, Cluster: c, Files: files, RunDir: dir}, local: loopback}
	cfg := m.config()
	cfg.Address = netip.MustParseAddr("127.0.0.9") // certificates are for a VM's address, the test has loopback
	cfg.Dir = filepath.Join(dir, "etcd")
	cfg.New, cfg.Token = true, "token"
	return cfg, files
}

func TestAMemberSeedsServesAndGoesOnFromItsDisk(t *testing.T) {
	cfg, files := newTestMember(t)
	log := slog.New(slog.DiscardHandler)
	for round := range 2 {
		for range table.UnusableEnds { // what it said before, until it had caught up with another leader
			writeEnd(cfg.StatusSocket, cfg.Dir, outOfRange, time.Now())
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		begin := time.Now()
		go func() { done <- RunMember(ctx, cfg, log) }()
		s := waitReady(t, cfg.StatusSocket)
		t.Logf("round %d: ready after %s", round, time.Since(begin))
		eventually(t, "what was said of a directory on which a member serves is forgotten", func() bool {
			_, err := os.Stat(endPath(cfg.StatusSocket))
			return os.IsNotExist(err)
		})
		if s.Leader != s.MemberID || s.MemberID == 0 || s.Learner {
			t.Errorf("a cluster of one has another leader: %+v", s)
		}
		tlsConfig, err := certs.EtcdTLS(files)
		if err != nil {
			t.Fatal(err)
		}
		c, err := dial(cfg.DNSName, cfg.Address, tlsConfig)
		if err != nil {
			t.Fatal(err)
		}
		id, list, err := members(t.Context(), c)
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
		e, err := startMember(t.Context(), cfg, slog.New(slog.DiscardHandler))
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
		e.Close()
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

func waitReady(t *testing.T, socket string) table.MemberStatus {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if s, err := ReadStatus(t.Context(), socket); err == nil && s.Ready {
			return s
		}
	}
	t.Fatal("the member did not serve within 20 s")
	return table.MemberStatus{}
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

func TestMembersWithOneAddressAreNotStartedFrom(t *testing.T) {
	for urls, fits := range map[[2]string]bool{
		{"https://localhost:2380", "https://127.0.0.1:2380"}: false,
		{"https://localhost:2380", "https://127.0.0.2:2380"}: true,
	} {
		c := MemberConfig{InitialCluster: map[string]string{"a": urls[0], "b": urls[1]}}
		if err := c.apart(t.Context()); (err == nil) != fits {
			t.Errorf("%v: %v", urls, err)
		}
	}
}
