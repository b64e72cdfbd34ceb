package etcdmember

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/quorate/quorate/etcdmember/hosts"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// keepHosts writes the peers' names into the hosts file: the newest incarnation of each place says where it is. Where
// two claim one address, it is this replica's, or the younger one's.
func keepHosts(cfg Config, v record.View) {
	var newest []record.Incarnation
	for place := range v.Replicas {
		if i := v.Last(place); i != nil && place != cfg.Me.Place {
			newest = append(newest, *i)
		}
	}
	slices.SortFunc(newest, func(a, b record.Incarnation) int { return b.Time.Compare(a.Time) })
	peers := []replica.Peer{{Place: cfg.Me.Place, InstanceID: cfg.Me.InstanceID, Addresses: cfg.Me.Addresses}}
	for _, i := range newest {
		peers = append(peers, replica.Peer{Place: i.Place, Addresses: i.Addresses})
	}
	changed, err := hosts.Write(cfg.HostsFile, cfg.Cluster.Name, peers)
	if err != nil {
		cfg.Log.Warn("keep the hosts file", "err", err.Error())
	} else if changed {
		cfg.Log.Info("hosts file changed", "peers", len(peers))
	}
}

// unnamed are the hosts of the members' peer URLs that are not among the names of a hosts file.
func unnamed(known map[string]netip.Addr, members []table.Member) map[string]bool {
	out := map[string]bool{}
	for _, e := range members {
		for _, raw := range e.PeerURLs {
			u, err := url.Parse(raw)
			if err != nil {
				continue
			}
			if _, ok := known[strings.ToLower(u.Hostname())]; !ok {
				out[u.Hostname()] = true
			}
		}
	}
	return out
}
