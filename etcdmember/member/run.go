// Package member runs one etcd member, and speaks to it. The member is a child of the agent (Run), because etcd's code
// may exit its process at any time; it answers its agent on a unix socket (ReadStatus, HandOver, Alive), and leaves
// there how it ended. Our few fields become etcd's configuration in one place, Config.
//
// It decides nothing about a membership: whether a member starts, on what and as whom is in its Config. It starts on
// the directory that is there, or not at all.
package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// ErrRemoved is returned by Run when the cluster has removed this member: its directory is of no more use to it.
var ErrRemoved = errors.New("the cluster has removed this member")

// RemovedExitCode is the exit code of the child for ErrRemoved.
const RemovedExitCode = 10

// ErrStalled is returned by Run when the member has caught up but its client port does not come up. etcd waits for its
// first proposal, to publish itself, to be applied as an entry of the log, and tries again only after 5 s and two
// election time-outs. It comes with the database instead, if the leader committed it before it sent that. Starting
// again on the same directory is quicker: 12 of 32 members stalled so, and all served within 1.7 s of that.
var ErrStalled = errors.New("the member has caught up, but its client port does not serve")

// maxStalls bounds how often one start is broken off for a stall. Where that does not help, etcd's own second try has
// to.
const maxStalls = 5

// stallPatience is that of a start before which so many were broken off. It doubles: on a slow machine, where
// publishing alone takes a second, five starts with the same patience were broken off in vain (seen in an emulated
// one).
func stallPatience(stalls int) time.Duration { return firstStallPatience << stalls }

// errNoLog: a member that has run before is to go on, and its log is not there. Joining or seeding again under the same
// id would be a member that has forgotten what it acknowledged.
var errNoLog = errors.New("the directory holds no log, and this member has run before")

// Run runs one etcd member in this process until ctx is done, the member is removed (ErrRemoved), stalls
// (ErrStalled) or fails. A leader hands over before it stops. etcd's own code may exit the process at any time, which
// is why this is a child of the agent. Before anything in this process asks for a name its resolver is hosts.Resolver.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	joins := cfg.joins()
	e, port, err := startMember(ctx, cfg, log)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // told to stop before it ran
	case err != nil:
		WriteEnd(cfg.StatusSocket, cfg.Dir, err.Error(), time.Now())
		return err
	}
	if err := cfg.keepOnly(); err != nil {
		stopMember(e, port)
		return err
	}
	stop, err := serveStatus(cfg.StatusSocket, e)
	if err != nil {
		stopMember(e, port)
		return err
	}
	defer stop()
	defer watchPeers(ctx, log)()
	leadAlone(ctx, e, log)
	err = watchMember(ctx, e, cfg, stallWatch{joins: joins, patience: stallPatience(cfg.Stalls)}, log)
	if errors.Is(err, ErrStalled) {
		cfg.Stalls++
		// Closing waits for the lost publication. What etcd acknowledged is on the disk: the caller may just start
		// again.
		return errors.Join(err, cfg.Save(ConfigOf(cfg.StatusSocket)))
	}
	stopMember(e, port)
	return err
}

// stopMember stops etcd, its clients first.
func stopMember(e *embed.Etcd, port *clientPort) {
	port.close()
	e.Close()
}

// keepOnly writes down that the directory exists, so that whoever starts this member again, the supervisor or itself
// after a stall, can only go on from it. What the agent had written allowed to make one.
func (c *Config) keepOnly() error {
	if !c.New && len(c.InitialCluster) == 0 {
		return nil
	}
	c.New, c.InitialCluster = false, nil
	return c.Save(ConfigOf(c.StatusSocket))
}

// watchMember returns when the member has to end, and says why.
func watchMember(ctx context.Context, e *embed.Etcd, cfg Config, stall stallWatch, log *slog.Logger) error {
	ticker := time.NewTicker(statusPeriod)
	defer ticker.Stop()
	ready, tick := e.Server.ReadyNotify(), ticker.C
	if cfg.Stalls >= maxStalls {
		tick = nil
	}
	for {
		select {
		case <-ctx.Done():
			log.Info("stopping the member")
			return nil
		case err := <-e.Err():
			select {
			case <-e.Server.StoppingNotify(): // etcd ends its listeners before it says that it has stopped
				return ErrRemoved
			default:
				return fmt.Errorf("serve etcd: %w", err)
			}
		case <-e.Server.StopNotify():
			return ErrRemoved
		case <-ready:
			log.Info("the member serves", "member", record.MemberID(e.Server.MemberID()).String())
			ready, tick = nil, nil // both have said all they have to say
			if err := ForgetEnd(cfg.StatusSocket); err != nil {
				log.Warn("the member serves", "err", err.Error())
			}
		case <-tick:
			s, published := memberStatus(e, false), published(e) // each may wait for etcd's storage
			if stall.over(time.Now(), s, published) {
				return ErrStalled
			}
		}
	}
}

// joinTries bounds how often a joining member reads the list again because another joined at the same moment.
const joinTries = 20

// startMember starts etcd, and says through which port its clients come in.
func startMember(ctx context.Context, cfg Config, log *slog.Logger) (*embed.Etcd, *clientPort, error) {
	logged := wal.Exist(datadir.LogDir(cfg.Dir))
	if !logged && !cfg.New && len(cfg.InitialCluster) == 0 {
		return nil, nil, fmt.Errorf("start etcd on %s: %w", cfg.Dir, errNoLog)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make etcd's directory: %w", err)
	}
	if took, err := datadir.TakeReceived(cfg.Dir); err != nil {
		return nil, nil, err
	} else if took {
		log.Info("the database that a leader sent has its place, which was lost")
	}
	port, err := newClientPort(cfg, log)
	if err != nil {
		return nil, nil, err
	}
	joins := cfg.joins()
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
		if joins {
			if err := cfg.refreshCluster(ctx, log); err != nil {
				return nil, nil, err
			}
		}
		ec, err := cfg.embedConfig()
		if err != nil {
			return nil, nil, err
		}
		port.configure(ec)
		e, err := embed.StartEtcd(ec)
		if err == nil {
			return e, port, nil
		}
		// etcd compares the list with its peers' and has no error of its own for this (membership/cluster.go). Nothing
		// has been written that another try would stumble over: the log comes after the comparison.
		if !joins || try == joinTries || !strings.Contains(err.Error(), "member count is unequal") {
			return nil, nil, fmt.Errorf("start etcd: %w", err)
		}
		log.Info("the member list has changed meanwhile", "try", try)
	}
}

// refreshCluster reads the members from the peers, right before etcd compares its list with theirs: several replicas
// may join at the same moment, and each changes the list.
func (c *Config) refreshCluster(ctx context.Context, log *slog.Logger) error {
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
		if name != c.Name && !strings.HasPrefix(name, NotStarted) { // those would not answer
			urls = append(urls, u)
		}
	}
	cluster, err := etcdserver.GetClusterFromRemotePeers(zap.NewNop(), urls, rt)
	if err != nil {
		return fmt.Errorf("read the members: %w", err)
	}
	ownID, err := c.takeList(cluster.Members())
	if err == nil {
		err = c.apart(ctx)
	}
	if err != nil {
		return fmt.Errorf("read the members: %w", err)
	}
	return awaitTurn(ctx, goFirst(cluster.Members(), ownID), rt, log)
}

// takeList makes the initial cluster of a member list and returns the id of the own entry; 0: there is none. etcd takes
// the entry with its own URL for itself, whatever its id, and with another's it would be a member that has forgotten
// everything.
func (c *Config) takeList(list []*membership.Member) (own record.MemberID, err error) {
	taken := map[string]string{}
	for _, m := range list {
		id := record.MemberID(m.ID)
		name := inList + id.String()
		switch {
		case len(m.PeerURLs) == 0:
			continue
		case m.PeerURLs[0] == table.PeerURL(c.DNSName):
			if c.MemberID != 0 && id != c.MemberID {
				return 0, fmt.Errorf("the entry of this place is member %s by now, and %s was added for this disk", id,
					c.MemberID)
			}
			name, own = c.Name, id
		case m.Name == "":
			name = NotStarted + id.String()
		}
		taken[name] = m.PeerURLs[0]
	}
	c.InitialCluster = taken
	return own, nil
}

// apart wants the names in the list to lead to different addresses: etcd compares peer URLs by address, and would take
// one member's id for another's.
func (c *Config) apart(ctx context.Context) error {
	owner := map[string]string{}
	for _, raw := range c.InitialCluster {
		u, err := url.Parse(raw)
		if err != nil {
			return err
		}
		addresses, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
		if err != nil {
			continue // etcd asks again and again, and gives up by itself
		}
		for _, a := range addresses {
			if other, ok := owner[a]; ok && other != u.Hostname() {
				return fmt.Errorf("%s and %s have one address, %s: a member of one would take the id of the other",
					other, u.Hostname(), a)
			}
			owner[a] = u.Hostname()
		}
	}
	return nil
}

// joins: the member starts for the first time, in a cluster that is there.
func (c *Config) joins() bool { return !c.New && !wal.Exist(datadir.LogDir(c.Dir)) }

// published reports whether the member has applied its own publication: its clients' URLs come with that alone.
func published(e *embed.Etcd) bool {
	m := e.Server.Cluster().Member(e.Server.MemberID())
	return m != nil && len(m.ClientURLs) > 0
}

// soonRead is the size of a database below which starting again is quicker than to wait: it is read whole once more.
const soonRead = 1 << 30

// stallWatch finds a member that waits in vain for its own publication.
type stallWatch struct {
	// joins: it was not published before this start.
	joins    bool
	patience time.Duration

	caughtUp, published time.Time
}

// over reports, of a member that does not serve, that waiting longer is of no use.
func (w *stallWatch) over(now time.Time, s table.MemberStatus, published bool) bool {
	since := func(t *time.Time, holds bool) time.Duration {
		switch {
		case !holds:
			*t = time.Time{}
		case t.IsZero():
			*t = now
		}
		if t.IsZero() {
			return -1
		}
		return now.Sub(*t)
	}
	return since(&w.caughtUp, stalled(s)) > w.patience ||
		since(&w.published, w.joins && published && !s.Ready && s.Database.InUse < soonRead) > publishedPatience
}

// stalled reports whether the member has nothing to wait for but its own publication.
func stalled(s table.MemberStatus) bool {
	return !s.Ready && s.Leader != 0 && s.Applied > 0 && s.Applied == s.Committed
}
