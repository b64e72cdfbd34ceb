package rebuild

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// rebuiltInstance stands for an instance id that nobody knows any more. It is no instance's, so nobody takes what it
// names for his own.
const rebuiltInstance = "unknown"

// agreeOnEpoch: all that ran in the epoch ran with one token in one etcd cluster, and what the record has of it says
// the same.
func (b *rebuilder) agreeOnEpoch() {
	whoseToken, whoseCluster := "", ""
	if e := b.Epoch(b.epoch); e != nil {
		if e.Claim != nil {
			b.token, whoseToken = e.Claim.Token, fmt.Sprintf("epochs/%d/claim.json", b.epoch)
		}
		if e.Outcome != nil && e.Outcome.Abandoned != nil {
			b.fault("epochs/%d/outcome.json says that %s abandoned the epoch, and a member ran in it: these are two "+
				"histories", b.epoch, e.Outcome.Abandoned.By)
		} else if e.Outcome != nil {
			b.clusterID, whoseCluster = e.Outcome.Formed.ClusterID, fmt.Sprintf("epochs/%d/outcome.json", b.epoch)
		}
	}
	for _, t := range b.said {
		if t.Agent.Epoch != b.epoch {
			continue
		}
		switch {
		case t.Agent.Token == "" || t.Agent.Token == b.token:
		case b.token == "":
			b.token, whoseToken = t.Agent.Token, t.String()
		default:
			b.fault("%s holds another token of epoch %d than %s: these are two histories", t, b.epoch, whoseToken)
		}
		switch {
		case !t.settled() || t.ClusterID == 0 || t.ClusterID == b.clusterID:
		case b.clusterID == 0:
			b.clusterID, whoseCluster = t.ClusterID, t.String()
		default:
			b.fault("%s is a member of etcd cluster %s, %s of %s: these are two clusters", t, t.ClusterID, whoseCluster,
				b.clusterID)
		}
	}
	if b.clusterID == 0 {
		b.fault("no member runs, and no log could be read: etcd's cluster id of epoch %d is not known", b.epoch)
	}
}

// findSeeder finds who seeded the epoch. etcd makes a new cluster's id of the token and the first member's URL, and
// both are known or names: so the place is found by trying, and a token that does not belong to the cluster fits none.
func (b *rebuilder) findSeeder() {
	if len(b.faults) > 0 {
		return
	}
	for _, p := range b.candidates() {
		cluster, member, err := seededIDs(b.token, p.DNSName(b.wish.Cluster))
		if err == nil && cluster == b.clusterID {
			b.seeder, b.first = p, member
			return
		}
	}
	b.fault("etcd cluster %s was not seeded with the token of epoch %d by any of %s: if another master seeded it "+
		"that is gone by now, "+
		"name it with --seeder ZONE.NAME; else the disks are not of this cluster", b.clusterID, b.epoch,
		strings.Join(replica.PlaceNames(b.candidates()), ", "))
}

// candidates are all places that are known, and the one that the person named.
func (b *rebuilder) candidates() []replica.Place {
	var out []replica.Place
	add := func(p replica.Place) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if e := b.Epoch(b.epoch); e != nil && e.Claim != nil {
		add(e.Claim.Seeder.Place)
	}
	if b.wish.Seeder != nil {
		add(*b.wish.Seeder)
	}
	for _, t := range b.said {
		add(t.Agent.Replica)
		for _, m := range t.Members {
			if p, _, ok := table.ParseMemberName(m.Name); ok {
				add(p)
			}
		}
	}
	for p := range b.Replicas {
		add(p)
	}
	slices.SortStableFunc(out, replica.ComparePlaces)
	return out
}

// seededIDs are the ids that etcd gives a cluster of one, and its member, by its own code.
func seededIDs(token, dnsName string) (cluster, member record.MemberID, err error) {
	u, err := url.Parse(table.PeerURL(dnsName))
	if err != nil {
		return 0, 0, err
	}
	c, err := membership.NewClusterFromURLsMap(nil, token, types.URLsMap{"seeder": types.URLs{*u}})
	if err != nil {
		return 0, 0, err
	}
	return record.MemberID(c.ID()), record.MemberID(c.MemberIDs()[0]), nil
}

// findOutcomeAndClaim: the outcome first. With a claim alone an agent could take the epoch for one that is still to be
// formed.
func (b *rebuilder) findOutcomeAndClaim() {
	e := b.Epoch(b.epoch)
	if e == nil {
		e = &record.Epoch{}
	}
	if e.Outcome == nil {
		b.lose(Lost{Key: fmt.Sprintf("epochs/%d/outcome.json", b.epoch), Epoch: b.epoch,
			Why: fmt.Sprintf("%s ran in it; etcd cluster %s is what its token and %s make", b.ran(), b.clusterID,
				b.seeder),
			Object: record.Outcome{Formed: &record.Formed{ClusterID: b.clusterID, MemberID: b.first},
				Time: b.wish.Now}})
	}
	if e.Claim == nil {
		b.lose(Lost{Key: fmt.Sprintf("epochs/%d/claim.json", b.epoch), Epoch: b.epoch,
			Why: fmt.Sprintf("the token is on the disk of %s", b.ran()),
			Object: record.Claim{Token: b.token, Seeder: record.Seeder{Place: b.seeder, InstanceID: rebuiltInstance},
				MaxLearners: table.MaxLearners, Source: record.Source{Kind: record.SourceRebuilt}, Time: b.wish.Now}})
	}
}

// ran names those whose member ran in the epoch.
func (b *rebuilder) ran() string {
	var out []replica.Place
	for _, t := range b.said {
		if t.settled() && t.Agent.Epoch == b.epoch {
			out = append(out, t.Agent.Replica)
		}
	}
	return strings.Join(replica.PlaceNames(out), ", ")
}

// findInception comes last: without an inception nobody seeds, whatever else is there or not.
func (b *rebuilder) findInception() {
	if b.Inception != nil {
		return
	}
	in := record.Inception{UID: b.uid, Name: b.wish.Cluster, ProjectNumber: b.wish.ProjectNumber, Time: b.wish.Now}
	for _, t := range b.said {
		in.Region = replica.RegionOf(t.Agent.Replica.Zone)
		if t.Time.Before(in.Time) {
			in.Time = t.Time // a clock before the inception is a fault: no replica's may be
		}
		if in.ProjectNumber == "" && t.Identity != nil {
			in.ProjectNumber = t.Identity.ProjectNumber
		}
	}
	if in.ProjectNumber == "" {
		b.fault("no file says in which project the masters are: name it with --project-number")
		return
	}
	b.lose(Lost{Key: "inception.json", Object: in,
		Why: fmt.Sprintf("the uid is in agent.json of %s; the time is that of the oldest file", b.ran())})
}

func (b *rebuilder) lose(l Lost) { b.lost = append(b.lost, l) }
