package member

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/raft/v3"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/record"
)

// serveStatus answers the agent on the unix socket.
func serveStatus(socket string, e *embed.Etcd) (stop func(), err error) {
	mux, storage := http.NewServeMux(), &storageWatch{rev: e.Server.KV().Rev}
	mux.HandleFunc("GET /alive", storage.serveAlive)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		s := awaitNews(r.Context(), r.URL.Query(), func() table.MemberStatus {
			return memberStatus(e, r.URL.Query().Has("streams"))
		})
		s.Revision, _ = storage.ask()
		json.NewEncoder(w).Encode(s)
	})
	mux.HandleFunc("POST /hand-over", func(w http.ResponseWriter, r *http.Request) {
		to, err := record.ParseMemberID(r.URL.Query().Get("to"))
		if r.URL.Query().Has("to") && err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := handOver(r.Context(), e, to); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /defragment", func(w http.ResponseWriter, r *http.Request) {
		if err := defragment(e); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	stop, err = local.Serve(socket, mux)
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	return stop, nil
}

// defragment is what etcd's maintenance service does, and refuses to learners. What a voter gives back is the leader's
// business. The file that it makes must not replace one that the leader has just sent. Where one arrives all the same
// before this has ended, the next start finds a database that ends before its log, and the member is replaced (row 29).
func defragment(e *embed.Etcd) error {
	if !memberStatus(e, false).Learner {
		return errors.New("only a learner defragments itself")
	}
	// rafthttp receives the state as tmp*, and has it ready as *.snap.db (snap/db.go).
	for _, pattern := range []string{"tmp*", "*.snap.db"} {
		found, err := filepath.Glob(filepath.Join(e.Config().Dir, "member", "snap", pattern))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return fmt.Errorf("the member is receiving the state: %s", found)
		}
	}
	return e.Server.Backend().Defrag()
}

// handOver moves the leadership to a member, or, for 0, to the voter whose log is longest among those heard of
// recently.
func handOver(ctx context.Context, e *embed.Etcd, to record.MemberID) error {
	look := func() table.MemberStatus { return memberStatus(e, false) }
	s := look()
	if s.Leader != s.MemberID {
		return nil
	}
	if to == 0 {
		var alone bool
		if to, alone = awaitSuccessor(ctx, look); alone {
			return nil
		}
	}
	if to == 0 {
		return errors.New("no other voter has been heard of within the last election time-out")
	}
	return e.Server.MoveLeader(ctx, uint64(s.MemberID), uint64(to))
}

// awaitSuccessor is the successor by a look, and looks again while nobody is heard of: once an election time-out raft
// forgets whom it has heard of, right before it asks them all again (raft.go, MsgCheckQuorum).
func awaitSuccessor(ctx context.Context, look func() table.MemberStatus) (best record.MemberID, alone bool) {
	for tries := 1; ; tries++ {
		best, alone = look().Successor()
		if best != 0 || alone || tries == successorLooks || backoff.Sleep(ctx, successorPause) != nil {
			return best, alone
		}
	}
}

// memberStatus reads what the server says of itself, without its storage's revision. Which streams are up costs a
// gathering of all metrics: only where asked for.
func memberStatus(e *embed.Etcd, streams bool) table.MemberStatus {
	srv := e.Server
	s := table.MemberStatus{
		MemberID: record.MemberID(srv.MemberID()), ClusterID: record.MemberID(srv.Cluster().ID()),
		Leader: record.MemberID(srv.Leader()),
		Term:   srv.Term(), Committed: srv.CommittedIndex(), Applied: srv.AppliedIndex(),
		Ready: closed(srv.ReadyNotify()), Removed: srv.IsIDRemoved(uint64(srv.MemberID())),
		Database: table.Database{Bytes: srv.Backend().Size(), InUse: srv.Backend().SizeInUse(),
			Quota: srv.Cfg.QuotaBackendBytes},
	}
	for _, a := range srv.Alarms() {
		s.Alarms = append(s.Alarms, table.Alarm{MemberID: record.MemberID(a.GetMemberID()),
			Kind: table.AlarmKind(a.GetAlarm().String())})
	}
	for _, m := range srv.Cluster().Members() {
		s.Members = append(s.Members, table.Member{ID: record.MemberID(m.ID), Name: m.Name, PeerURLs: m.PeerURLs,
			Learner: m.IsLearner})
		// Not by the server's IsLearner, which panics until the member has applied its own entry: one that was killed
		// before its database was first written has to read it from its log again.
		s.Learner = s.Learner || m.ID == srv.MemberID() && m.IsLearner
	}
	if s.Leader == s.MemberID {
		s.Progress = progress(s.MemberID, streams)
	}
	return s
}

// localRaft asks raft's loop, by the variable that etcd publishes (server/etcdserver/raft.go): one server a process.
func localRaft() (st raft.Status, ok bool) {
	if f, published := expvar.Get("raft.status").(expvar.Func); published {
		st, ok = f.Value().(raft.Status)
	}
	return st, ok
}

// progress is what raft knows of each member, on the leader.
func progress(self record.MemberID, streams bool) map[record.MemberID]table.PeerProgress {
	st, ok := localRaft()
	if !ok {
		return nil
	}
	var active map[record.MemberID]bool
	if streams {
		active = activePeers()
	}
	out := make(map[record.MemberID]table.PeerProgress, len(st.Progress))
	for id, p := range st.Progress {
		mid := record.MemberID(id)
		out[mid] = table.PeerProgress{
			Match: p.Match, State: stateName(p.State.String()), Learner: p.IsLearner,
			PendingSnapshot: p.PendingSnapshot,
			RecentActive:    p.RecentActive || mid == self, StreamsActive: active[mid] || mid == self,
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
