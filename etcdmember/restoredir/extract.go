package restoredir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/record"
)

// extract reads a member's directory whole, on a copy, and returns a file with its database. Whole means: with every
// entry of the log applied, also those beyond the commit index that was saved, because an entry may have been
// acknowledged before the member heard of it. An entry that was not acknowledged to anybody may come with them: its
// writer got no answer, so both outcomes keep what was promised.
func (k Job) extract(ctx context.Context, log *slog.Logger) (file string, err error) {
	dir := filepath.Join(k.Scratch, "copy")
	if err := copyTree(k.Directory, dir); err != nil {
		return "", err
	}
	if _, err := datadir.TakeReceived(dir); err != nil {
		return "", err
	}
	last, err := commitAll(datadir.LogDir(dir))
	if err != nil {
		return "", fmt.Errorf("raise the commit index of the copy: %w", err)
	}
	log.Info("every entry of the copy is committed", "last", last)
	file = filepath.Join(k.Scratch, "source.db")
	if err := saveDatabase(ctx, dir, last, file); err != nil {
		return "", err
	}
	return file, os.RemoveAll(dir) // its room is needed for what follows
}

// commitAll appends a hard state to a log that commits its last entry, and returns that entry's index. Of a learner's
// log an entry that promotes it is the last: etcd would else take the voters out and have none. A torn end is cut off
// first, as etcd does: nothing in it was ever acknowledged, because an acknowledgement follows the sync.
func commitAll(walDir string) (last uint64, err error) {
	lg := zap.NewNop()
	for range 2 {
		last, err = tryCommitAll(lg, walDir)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			return last, err
		}
		if !wal.Repair(lg, walDir) {
			return 0, errors.New("the torn end of the log cannot be cut off")
		}
	}
	return last, err
}

func tryCommitAll(lg *zap.Logger, walDir string) (last uint64, err error) {
	snaps, err := wal.ValidSnapshotEntries(lg, walDir)
	if err != nil {
		return 0, err
	}
	if len(snaps) == 0 {
		return 0, datadir.ErrNoStart
	}
	newest := snaps[len(snaps)-1]
	w, err := wal.Open(lg, walDir, &walpb.Snapshot{Index: newest.Index, Term: newest.Term})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	meta, state, entries, err := w.ReadAll()
	if err != nil {
		return 0, err
	}
	var m etcdserverpb.Metadata
	if err := proto.Unmarshal(meta, &m); err != nil {
		return 0, fmt.Errorf("its metadata: %w", err)
	}
	last = newest.GetIndex()
	if n := len(entries); n > 0 {
		last = entries[n-1].GetIndex()
	}
	term, vote := state.GetTerm(), state.GetVote()
	var more []*raftpb.Entry
	if self := m.GetNodeID(); !votes(newest.GetConfState(), datadir.ConfigChanges(entries), record.MemberID(self)) {
		last++
		promotion, err := promote(self, term, last)
		if err != nil {
			return 0, err
		}
		more = append(more, promotion)
	}
	return last, w.Save(&raftpb.HardState{Term: &term, Vote: &vote, Commit: &last}, more)
}

// votes: with all of its log applied the member is a voter.
func votes(cs *raftpb.ConfState, changes []record.ConfigChange, self record.MemberID) bool {
	voters := datadir.MemberIDs(cs.GetVoters())
	for _, c := range changes {
		voters = table.ApplyChange(voters, c)
	}
	return slices.Contains(voters, self)
}

// promote is the entry by which etcd's leader promotes a learner.
func promote(self, term, index uint64) (*raftpb.Entry, error) {
	content, err := json.Marshal(membership.ConfigChangeContext{Member: membership.Member{ID: types.ID(self)},
		IsPromote: true})
	if err != nil {
		return nil, fmt.Errorf("encode a promotion: %w", err)
	}
	change, err := proto.Marshal(&raftpb.ConfChange{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: &self,
		Context: content})
	if err != nil {
		return nil, fmt.Errorf("encode a promotion: %w", err)
	}
	return &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Term: &term, Index: &index, Data: change}, nil
}

// applyTimeout bounds the applying of a log to its database. The longest log that etcd keeps is some hundred thousand
// entries.
const applyTimeout = 30 * time.Minute

// saveDatabase runs etcd on a directory that will be thrown away, as the only member and without a single socket, until
// every entry up to last is applied, and writes its database to a file.
func saveDatabase(ctx context.Context, dir string, last uint64, file string) error {
	e := embed.NewConfig()
	e.Name, e.Dir = "restore", dir
	e.Logger, e.LogOutputs = "zap", []string{"stderr"}
	e.ListenPeerUrls, e.ListenClientUrls, e.AdvertiseClientUrls = nil, nil, nil
	e.InitialCluster = e.InitialClusterFromName(e.Name)
	// of the copy only: it keeps ids, so on anything that may start again it would be a second history
	e.ForceNewCluster = true
	e.MaxLearners = table.MaxLearners
	e.QuotaBackendBytes = 100 << 30 // nothing is written but what the log holds already
	server, err := embed.StartEtcd(e)
	if err != nil {
		return fmt.Errorf("start etcd on the copy: %w", err)
	}
	defer server.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, applyTimeout, fmt.Errorf("not done within %s", applyTimeout))
	defer cancel()
	if err := awaitApplied(ctx, server, last); err != nil {
		return fmt.Errorf("apply the log of the copy: %w", err)
	}
	server.Server.KV().Commit()
	snap := server.Server.Backend().Snapshot()
	defer snap.Close()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = snap.WriteTo(f)
	return errors.Join(err, f.Close())
}

// awaitApplied waits until the entry with the index, and those that make it the only member, are applied.
func awaitApplied(ctx context.Context, server *embed.Etcd, last uint64) error {
	for {
		select {
		case <-server.Server.ReadyNotify():
			if server.Server.AppliedIndex() >= last {
				return nil
			}
		case err := <-server.Err():
			return err
		case <-server.Server.StopNotify():
			return errors.New("etcd stopped")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := backoff.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}
