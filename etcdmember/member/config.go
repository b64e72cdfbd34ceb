package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap/zapcore"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// The ports of every member. They are fixed: peers and clients find a member by its name alone.
const (
	ClientPort = 2379
	// metricsPort serves /metrics, /livez and /readyz on loopback, without a client certificate.
	metricsPort = 2381
	// httpPort serves etcd's HTTP paths on loopback, to clients with a certificate. quorate uses none of them. Without
	// this port Go's HTTP server would serve gRPC too, which etcd warns against: small writes take twice as long
	// (docs/measured.md).
	httpPort = 2382
)

// Ports are all ports that a member listens on.
func Ports() []int { return []int{ClientPort, table.PeerPort, metricsPort, httpPort} }

// Config is all that `quorate run-etcd` needs to run one member: the agent writes it as a file, the child reads
// it, and takes out of it what allows to make a directory once there is one. embedConfig is the only place where it
// becomes etcd's own configuration; clientPort adds to it what gRPC's server needs.
type Config struct {
	// Name is etcd's member name, <zone>.<name>.<instance id>; DNSName is the host of its peer and client URLs.
	Name    string `json:"name"`
	DNSName string `json:"dnsName"`
	// Dir is etcd's data directory, <data disk>/etcd.
	Dir string `json:"dir"`
	// Address is where peers and clients of other replicas come in; Local, a loopback address, is where those of this
	// replica do.
	Address netip.Addr `json:"address"`
	Local   netip.Addr `json:"local"`
	// New forms a new cluster of one with Token. Otherwise the member joins InitialCluster (name -> peer URL) as the
	// member list shows it, or, where Dir holds a log, goes on from it and neither matters.
	New            bool              `json:"new"`
	Token          string            `json:"token,omitempty"`
	InitialCluster map[string]string `json:"initialCluster,omitempty"`
	// MemberID is the id that was added for Dir, where the member joins: its entry in the list must be that one.
	MemberID record.MemberID `json:"memberID,omitempty"`
	// Stalls counts the starts that were broken off because the client port did not come up (ErrStalled).
	Stalls int `json:"stalls,omitempty"`
	// Files of the two authorities: a leaf's file holds key and certificate.
	PeerLeaf   string `json:"peerLeaf"`
	PeerCA     string `json:"peerCA"`
	ServerLeaf string `json:"serverLeaf"`
	ClientCA   string `json:"clientCA"`
	// Heartbeat and Election are raft's timers.
	Heartbeat time.Duration `json:"heartbeat"`
	Election  time.Duration `json:"election"`
	// QuotaBytes bounds the database; CatchUpEntries are kept in the log for a member that was away.
	QuotaBytes     int64  `json:"quotaBytes"`
	CatchUpEntries uint64 `json:"catchUpEntries"`
	// HashCheck is the time between two comparisons of what compactions have hashed, DataCheck between two of
	// everything. 0: etcd's own.
	HashCheck time.Duration `json:"hashCheck,omitempty"`
	DataCheck time.Duration `json:"dataCheck,omitempty"`
	// StatusSocket is the unix socket on which the child tells the agent how the member is (MemberStatus).
	StatusSocket string `json:"statusSocket"`
}

// ConfigFor is what every start of a replica's member has in common. runDir is a tmpfs, for its status socket.
func ConfigFor(me replica.Identity, c *replica.Cluster, files certs.Files, runDir string) Config {
	return Config{
		Name: me.MemberName(), DNSName: me.DNSName(c.Name), Dir: datadir.Dir(c.Etcd.DataDir).Etcd(),
		Address: me.Address(), Local: Loopback,
		PeerLeaf: files.Leaf(certs.EtcdPeerLeaf), PeerCA: files.CA(certs.EtcdPeer),
		ServerLeaf: files.Leaf(certs.EtcdServer), ClientCA: files.CA(certs.EtcdClient),
		Heartbeat: c.Etcd.Heartbeat.Duration(), Election: c.Etcd.Election.Duration(),
		QuotaBytes: c.Etcd.QuotaBytes, CatchUpEntries: c.Etcd.CatchUpEntries, DataCheck: dataCheck,
		StatusSocket: SocketIn(runDir),
	}
}

// Save writes the configuration where the child will read it, and makes the folder for it.
func (c Config) Save(path string) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return fmt.Errorf("write member configuration: %w", err)
	}
	return durable.WriteFile(path, b, 0o600)
}

// LoadConfig is the inverse of Save.
func LoadConfig(path string) (Config, error) {
	var c Config
	b, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read member configuration: %w", err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("decode member configuration %s: %w", path, err)
	}
	if c.Name == "" || c.DNSName == "" || c.Dir == "" || !c.Address.IsValid() {
		return c, fmt.Errorf("member configuration %s: name, dnsName, dir and address must be given", path)
	}
	if !c.Local.IsValid() {
		c.Local = Loopback
	}
	return c, nil
}

// SocketIn is the status socket of the child of an agent with this run folder, a tmpfs. It is in a folder of its own,
// with all else that the child writes there: the child may be another user than the agent.
func SocketIn(runDir string) string { return filepath.Join(runDir, "member", "etcd.sock") }

// SocketOf is the status socket of the child that runs with the configuration at a path.
func SocketOf(configPath string) string { return filepath.Join(filepath.Dir(configPath), "etcd.sock") }

// ConfigOf is the inverse of SocketOf.
func ConfigOf(socket string) string { return filepath.Join(filepath.Dir(socket), "etcd.json") }

// ClientURL is the client URL of a member with this DNS name.
func ClientURL(dnsName string) string { return fmt.Sprintf("https://%s:%d", dnsName, ClientPort) }

// embedConfig builds etcd's configuration. What is not set here is etcd's default on purpose: pre-vote, strict
// reconfiguration checks, 10 000 entries between snapshots, compaction left to the apiserver.
func (c Config) embedConfig() (*embed.Config, error) {
	e := embed.NewConfig()
	e.Name, e.Dir = c.Name, c.Dir
	e.Logger, e.LogOutputs, e.LogLevel = "zap", []string{"stderr"}, zapcore.InfoLevel.String()

	e.ListenPeerUrls = []url.URL{listenURL("https", c.Address, table.PeerPort)}
	e.ListenClientUrls = []url.URL{listenURL("https", c.Address, ClientPort), listenURL("https", c.Local, ClientPort)}
	e.ListenClientHttpUrls = []url.URL{listenURL("https", c.Local, httpPort)}
	e.ListenMetricsUrls = []url.URL{listenURL("http", c.Local, metricsPort)}
	e.AdvertisePeerUrls = []url.URL{{Scheme: "https", Host: fmt.Sprintf("%s:%d", c.DNSName, table.PeerPort)}}
	e.AdvertiseClientUrls = []url.URL{{Scheme: "https", Host: fmt.Sprintf("%s:%d", c.DNSName, ClientPort)}}

	e.PeerTLSInfo = transport.TLSInfo{CertFile: c.PeerLeaf, KeyFile: c.PeerLeaf, TrustedCAFile: c.PeerCA,
		ClientCertAuth: true}
	e.ClientTLSInfo = c.clientTLS()
	e.TlsMinVersion = "TLS1.2"
	// The gateway would use the server's certificate as a client's, which it is not.
	e.EnableGRPCGateway = false

	if err := logWithLastWords(e, c.StatusSocket); err != nil {
		return nil, err
	}
	e.InitialClusterToken = c.Token
	e.ClusterState = embed.ClusterStateFlagExisting
	e.InitialCluster = joinCluster(c.InitialCluster)
	if c.New {
		e.ClusterState = embed.ClusterStateFlagNew
		e.InitialCluster = c.Name + "=" + table.PeerURL(c.DNSName)
	}

	e.TickMs = uint(c.Heartbeat.Milliseconds())
	e.ElectionMs = uint(c.Election.Milliseconds())
	e.QuotaBackendBytes = c.QuotaBytes
	e.SnapshotCatchUpEntries = c.CatchUpEntries
	e.MaxLearners = table.MaxLearners
	e.WatchProgressNotifyInterval = progressInterval
	gates, ok := e.ServerFeatureGate.(featuregate.MutableFeatureGate)
	if !ok {
		return nil, errors.New("configure etcd: its feature gates cannot be set")
	}
	// A member that comes to differ from its peers is found within a minute of a compaction, and at the latest by the
	// hash of everything. InitialCorruptCheck would compare before the start, but it asks one peer after the other with
	// 7 s for each: three members that came back at once waited 14.5 s for one another.
	if err := gates.Set("CompactHashCheck=true"); err != nil {
		return nil, fmt.Errorf("configure etcd: %w", err)
	}
	e.CorruptCheckTime = c.DataCheck
	if c.HashCheck > 0 {
		e.CompactHashCheckTime = c.HashCheck
	}
	return e, nil
}

// Loopback is where clients of this machine come in.
var Loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func listenURL(scheme string, a netip.Addr, port int) url.URL {
	return url.URL{Scheme: scheme, Host: netip.AddrPortFrom(a, uint16(port)).String()}
}

// joinCluster spells an initial cluster as etcd's flag does, in a stable order.
func joinCluster(members map[string]string) string {
	parts := make([]string, 0, len(members))
	for name, peerURL := range members {
		parts = append(parts, name+"="+peerURL)
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
