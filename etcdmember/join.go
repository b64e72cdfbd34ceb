package etcdmember

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/record"
)

// The leaves and authorities of etcd's two ports.
const (
	peerLeaf, serverLeaf = certs.EtcdPeerLeaf, certs.EtcdServer
	peerCA, clientCA     = certs.EtcdPeer, certs.EtcdClient
)

// removedIDPause is how long to wait after etcd refused an id as removed: an added member's id is a hash of its URLs
// and the time in seconds, so removing and adding within one second gives the same id.
const removedIDPause = time.Second

// pauseAfter is how long to wait after a learner was refused. Where there are too many, or too few voters are
// connected, several replicas may want the same at once: they spread themselves over 1 to 5 s.
func pauseAfter(err error) time.Duration {
	switch {
	case errors.Is(err, rpctypes.ErrMemberNotFound): // etcd's word for a removed id (v3rpc/util.go)
		return removedIDPause
	case errors.Is(err, rpctypes.ErrTooManyLearners), errors.Is(err, rpctypes.ErrUnhealthy):
		return time.Second + rand.N(4*time.Second)
	}
	return 0
}

// onQuorum calls with a client of one member that answered through quorum.
func (m *Membership) onQuorum(ctx context.Context, f table.Facts,
	call func(context.Context, *clientv3.Client) error) error {
	a, ok := table.QuorumAnswer(f)
	if !ok {
		return errNoQuorum
	}
	c, err := dial(a.DNSName(m.cfg.Cluster.Name), a.Address, m.cfg.TLS())
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return call(ctx, c)
}

// errNoQuorum: the plan needed a member that answers through quorum, and none did when it was made.
var errNoQuorum = errors.New("no member of this epoch answers through quorum")

// addLearner adds this replica to the members, as a learner, and writes its id to the disk: join steps 4 and 5. A
// time-out is ambiguous: the next look finds the entry, and removes it, because nothing on this disk says that it was
// added.
func (m *Membership) addLearner(ctx context.Context, f table.Facts) error {
	var id record.MemberID
	adding, cancel := context.WithTimeout(ctx, m.addTimeout())
	defer cancel()
	err := m.at(StepAddLearner, func() error {
		return m.onQuorum(adding, f, func(ctx context.Context, c *clientv3.Client) error {
			resp, err := c.MemberAddAsLearner(ctx, []string{table.PeerURL(m.dnsName())})
			if err != nil {
				return err
			}
			id = record.MemberID(resp.Member.GetID())
			return nil
		})
	})
	if err != nil {
		return errors.Join(fmt.Errorf("add learner: %w", err), backoff.Sleep(ctx, pauseAfter(err)))
	}
	return m.setAgentAt(StepMarkAdded, func(a *table.AgentFile) { a.Phase, a.MemberID = table.PhaseAdded, id })
}

// firstAddTimeout is for the first try to add this replica. Raft drops a change without a word while another is being
// applied ("ignoring conf change", raft.go), and replicas that boot together add themselves in the same milliseconds:
// waiting for the whole callTimeout made such a boot 5.5 s longer. Later tries have all of it, because what takes
// longer here is a slow cluster.
const firstAddTimeout = time.Second

func (m *Membership) addTimeout() time.Duration {
	m.adds++
	if m.adds == 1 {
		return firstAddTimeout
	}
	return callTimeout
}

// startJoined starts the member that was added for this disk: join step 8. The child reads the list again right before
// it starts, because another may join in between.
func (m *Membership) startJoined(ctx context.Context, f table.Facts) error {
	a, ok := table.QuorumAnswer(f)
	if !ok {
		return errNoQuorum
	}
	cfg := m.memberConfig()
	cfg.MemberID, cfg.InitialCluster = m.agent.MemberID, map[string]string{}
	for _, e := range a.Members {
		if len(e.PeerURLs) > 0 {
			cfg.InitialCluster[initialName(e, m.agent.MemberID, cfg.Name)] = e.PeerURLs[0]
		}
	}
	if err := m.setAgentAt(StepMarkStarted, func(a *table.AgentFile) { a.Phase = table.PhaseStarted }); err != nil {
		return err
	}
	return m.startChild(ctx, StepStartJoined, cfg)
}

// initialName gives a name to every entry: etcd matches by URL alone, but its configuration wants names.
func initialName(e table.Member, own record.MemberID, ownName string) string {
	switch {
	case e.ID == own:
		return ownName
	case e.Name == "":
		return notStarted + e.ID.String()
	default:
		return e.Name
	}
}

// start goes on with the directory as it is.
func (m *Membership) start(ctx context.Context, p table.Plan) error {
	if err := m.setAgentAt(StepStartOnDisk, func(a *table.AgentFile) {
		a.Phase, a.MemberID = table.PhaseStarted,
			p.MemberID
	}); err != nil {
		return err
	}
	return m.startChild(ctx, StepStart, m.memberConfig())
}
