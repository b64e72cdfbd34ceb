package etcdmember

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// What a member has acknowledged is known to the leader to which it did: raft's Progress.Match, the newest entry that
// the member said was on its disk. A directory whose log ends before that has lost what it acknowledged: it is an older
// copy of the disk, put back in its place, or the disk lied. Started, it would be asked to commit what it does not
// have, and etcd panics ("tocommit is out of range").

// findAcknowledged asks a member what this disk's member had acknowledged to it; 0 where it is not the leader. A leader
// that has just answered through quorum is believed in everything. The order of the two questions makes that a proof:
// the own member has not run since before the first one, so a newer leader cannot have cut its log after it, and a
// leader that a quorum confirmed then was the newest there was. One that was slower than the others, or believes to
// lead and does not, is believed in what it knows to be committed: that was never cut from any log.
func (k *asker) findAcknowledged(ctx context.Context, a table.Answer, own record.MemberID) uint64 {
	status, err := k.raft(ctx, a)
	if err != nil {
		k.log.Info("ask what this member acknowledged", "of", a.Place.String(), "err", err.Error())
		return 0
	}
	acknowledged := status.acknowledged(own)
	if a.Reach != table.ReachLinearizable {
		acknowledged = min(acknowledged, status.Commit)
	}
	return acknowledged
}

// raftStatus is what a member publishes of raft on its client port (etcdhttp, /debug/vars; go.etcd.io/raft's
// Status.MarshalJSON).
type raftStatus struct {
	State    string `json:"raftState"`
	Commit   uint64 `json:"commit"`
	Progress map[string]struct {
		Match uint64 `json:"match"`
	} `json:"progress"`
}

// acknowledged is the newest entry that a member has acknowledged to this leader; 0: it is not the leader, or has heard
// nothing of the member.
func (s raftStatus) acknowledged(id record.MemberID) uint64 {
	if s.State != "StateLeader" {
		return 0
	}
	return s.Progress[etcdID(id)].Match
}

// maxVars bounds the answer: raft's status is a line in it, the rest are the runtime's counters, some 20 KB.
const maxVars = 1 << 20

func (k *asker) raftStatus(ctx context.Context, a table.Answer) (raftStatus, error) {
	name := a.DNSName(k.cluster)
	target := netip.AddrPortFrom(a.Address, member.ClientPort).String()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: named(k.config(), name), DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", target)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, member.ClientURL(name)+"/debug/vars", nil)
	if err != nil {
		return raftStatus{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return raftStatus{}, fmt.Errorf("ask for raft's status: %w", err)
	}
	defer resp.Body.Close()
	var vars struct {
		Status raftStatus `json:"raft.status"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxVars)).Decode(&vars); err != nil {
		return raftStatus{}, fmt.Errorf("decode raft's status: %w", err)
	}
	return vars.Status, nil
}
