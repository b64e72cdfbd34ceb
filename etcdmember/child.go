package etcdmember

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/record"
)

// ErrRemoved is returned by RunMember when the cluster has removed this member: its directory is of no more use to it.
var ErrRemoved = errors.New("the cluster has removed this member")

// RemovedExitCode is the exit code of the child for ErrRemoved.
const RemovedExitCode = 10

// ErrStalled is returned by RunMember when the member has caught up but its client port does not come up. Its first
// proposal, to publish itself, was lost, and etcd tries again only after 5 s and two election time-outs. Starting again on
// the same directory is quicker: 12 of 32 members stalled so, and all served within 1.7 s of that.
var ErrStalled = errors.New("the member has caught up, but its client port does not serve")

const (
	// stallPatience is how long a member may have a leader and all committed entries without serving.
	stallPatience = 400 * time.Millisecond
	// statusPeriod is the tick at which the child looks for a stall; the status itself is computed when asked.
	statusPeriod = 50 * time.Millisecond
)

// RunMember runs one etcd member in this process until ctx is done, the member is removed (ErrRemoved), stalls
// (ErrStalled) or fails. A leader hands over before it stops. etcd's own code may exit the process at any time, which is why
// this is a child of the agent.
func RunMember(ctx context.Context, cfg MemberConfig, log *slog.Logger) error {
	net.DefaultResolver = freshHosts(hostsPath)
	e, err := startMember(cfg, log)
	if err != nil {
		return err
	}
	stop, err := serveStatus(cfg.StatusSocket, e)
	if err != nil {
		e.Close()
		return err
	}
	defer stop()
	leadAlone(ctx, e, log)
	err = watchMember(ctx, e, log)
	if errors.Is(err, ErrStalled) {
		// Closing waits for the lost publication. What etcd acknowledged is on the disk: the caller may just start again.
		return err
	}
	e.Close()
	return err
}

// watchMember returns when the member has to end, and says why.
func watchMember(ctx context.Context, e *embed.Etcd, log *slog.Logger) error {
	ticker := time.NewTicker(statusPeriod)
	defer ticker.Stop()
	ready, tick := e.Server.ReadyNotify(), ticker.C
	var caughtUp time.Time
	for {
		select {
		case <-ctx.Done():
			log.Info("stopping the member")
			return nil
		case err := <-e.Err():
			return fmt.Errorf("serve etcd: %w", err)
		case <-e.Server.StopNotify():
			return ErrRemoved
		case <-ready:
			log.Info("the member serves", "member", record.MemberID(e.Server.MemberID()).String())
			ready, tick = nil, nil // both have said all they have to say
		case now := <-tick:
			switch {
			case !stalled(memberStatus(e, false)):
				caughtUp = time.Time{}
			case caughtUp.IsZero():
				caughtUp = now
			case now.Sub(caughtUp) > stallPatience:
				return ErrStalled
			}
		}
	}
}

// joinTries bounds how often a joining member reads the list again because another joined at the same moment.
const joinTries = 20

func startMember(cfg MemberConfig, log *slog.Logger) (*embed.Etcd, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make etcd's directory: %w", err)
	}
	joins := !cfg.New && !wal.Exist(datadir.ToWALDir(cfg.Dir))
	for try := 1; ; try++ {
		if joins {
			if err := cfg.refreshCluster(); err != nil {
				return nil, err
			}
		}
		ec, err := cfg.embedConfig()
		if err != nil {
			return nil, err
		}
		e, err := embed.StartEtcd(ec)
		if err == nil {
			return e, nil
		}
		// etcd compares the list with its peers' and has no error of its own for this (membership/cluster.go). Nothing has been
		// written that another try would stumble over: the log comes after the comparison.
		if !joins || try == joinTries || !strings.Contains(err.Error(), "member count is unequal") {
			return nil, fmt.Errorf("start etcd: %w", err)
		}
		log.Info("the member list has changed meanwhile", "try", try)
	}
}

// refreshCluster reads the members from the peers, right before etcd compares its list with theirs: several replicas may join
// at the same moment, and each changes the list.
func (c *MemberConfig) refreshCluster() error {
	ec, err := c.embedConfig()
	if err != nil {
		return err
	}
	rt, err := rafthttp.NewRoundTripper(ec.PeerTLSInfo, time.Second)
	if err != nil {
		return fmt.Errorf("read the members: %w", err)
	}
	var urls []string
	for name, u := range c.InitialCluster {
		if name != c.Name {
			urls = append(urls, u)
		}
	}
	cluster, err := etcdserver.GetClusterFromRemotePeers(zap.NewNop(), urls, rt)
	if err != nil {
		return fmt.Errorf("read the members: %w", err)
	}
	own := PeerURL(c.DNSName)
	list := map[string]string{}
	for _, m := range cluster.Members() {
		if len(m.PeerURLs) == 0 {
			continue
		}
		name := "member-" + m.ID.String()
		if m.PeerURLs[0] == own {
			name = c.Name
		}
		list[name] = m.PeerURLs[0]
	}
	c.InitialCluster = list
	return nil
}

// stalled reports whether the member has nothing to wait for but its own publication.
func stalled(s MemberStatus) bool {
	return !s.Ready && s.Leader != 0 && s.Applied > 0 && s.Applied == s.Committed
}

// serveStatus answers the agent on the unix socket.
func serveStatus(socket string, e *embed.Etcd) (stop func(), err error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(memberStatus(e, r.URL.Query().Has("streams")))
	})
	mux.HandleFunc("POST /hand-over", func(w http.ResponseWriter, r *http.Request) {
		if err := handOver(r.Context(), e); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	return func() { server.Close(); <-done }, nil
}

// handOver moves the leadership to the voter whose log is longest among those heard of recently.
func handOver(ctx context.Context, e *embed.Etcd) error {
	s := memberStatus(e, false)
	if s.Leader != s.MemberID {
		return nil
	}
	var best record.MemberID
	others := 0
	for id, p := range s.Progress {
		if id == s.MemberID || p.Learner {
			continue
		}
		others++
		if p.RecentActive && (best == 0 || p.Match > s.Progress[best].Match) {
			best = id
		}
	}
	if others == 0 {
		return nil
	}
	if best == 0 {
		return errors.New("no other voter has been heard of within the last election time-out")
	}
	return e.Server.MoveLeader(ctx, uint64(s.MemberID), uint64(best))
}

// memberStatus reads what the server says of itself. Which streams are up costs a gathering of all metrics: only where asked for.
func memberStatus(e *embed.Etcd, streams bool) MemberStatus {
	srv := e.Server
	s := MemberStatus{
		MemberID: record.MemberID(srv.MemberID()), ClusterID: record.MemberID(srv.Cluster().ID()),
		Leader: record.MemberID(srv.Leader()), Learner: srv.IsLearner(),
		Term: srv.Term(), Committed: srv.CommittedIndex(), Applied: srv.AppliedIndex(),
		Ready: closed(srv.ReadyNotify()), Removed: srv.IsIDRemoved(uint64(srv.MemberID())),
	}
	for _, m := range srv.Cluster().Members() {
		s.Members = append(s.Members, Member{ID: record.MemberID(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, Learner: m.IsLearner})
	}
	if s.Leader == s.MemberID {
		s.Progress = progress(s.MemberID, streams)
	}
	return s
}

// progress reads raft's status from the variable that etcd publishes (server/etcdserver/raft.go): one server a process.
func progress(self record.MemberID, streams bool) map[record.MemberID]PeerProgress {
	f, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return nil
	}
	st, ok := f.Value().(raft.Status)
	if !ok {
		return nil
	}
	var active map[record.MemberID]bool
	if streams {
		active = activePeers()
	}
	out := make(map[record.MemberID]PeerProgress, len(st.Progress))
	for id, p := range st.Progress {
		mid := record.MemberID(id)
		out[mid] = PeerProgress{
			Match: p.Match, State: stateName(p.State.String()), Learner: p.IsLearner, PendingSnapshot: p.PendingSnapshot,
			RecentActive: p.RecentActive || mid == self, StreamsActive: active[mid] || mid == self,
		}
	}
	return out
}

func stateName(s string) string {
	return map[string]string{"StateProbe": "probe", "StateReplicate": "replicate", "StateSnapshot": "snapshot"}[s]
}

// activePeers reads etcd's gauge of the peers whose streams are up; etcd has no call for it.
func activePeers() map[record.MemberID]bool {
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		return nil
	}
	out := map[record.MemberID]bool{}
	for _, f := range families {
		if f.GetName() != "etcd_network_active_peers" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if id, err := strconv.ParseUint(l.GetValue(), 16, 64); l.GetName() == "Remote" && err == nil {
					out[record.MemberID(id)] = m.GetGauge().GetValue() > 0
				}
			}
		}
	}
	return out
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
