package etcdmember

import (
	"context"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// testimonyFormat is raised when an older quorate would misread a newer testimony.
const testimonyFormat = 1

// Testimony is what one replica's data disk, and the member that runs on it, say of the cluster: the part of the record that does not
// depend on the record. It holds no key and no secret.
type Testimony struct {
	Format int `json:"format"`
	// Time is when it was given, by the replica's own clock.
	Time time.Time `json:"time"`
	// Cluster is the configured name.
	Cluster string `json:"cluster"`
	// Identity is the VM's, as its agent found it out in this boot; nil where the disk was read on another machine.
	Identity *replica.Identity `json:"identity,omitempty"`
	// DiskID is the Compute API's id of the disk; empty where it is not known.
	DiskID string `json:"diskID,omitempty"`
	// Agent is agent.json; the zero value where there is none.
	Agent AgentFile `json:"agent"`
	// ClusterID and MemberID are the running member's word, or else the log's; 0: there is neither.
	ClusterID record.MemberID `json:"clusterID,omitempty"`
	MemberID  record.MemberID `json:"memberID,omitempty"`
	// Running says that the member ran and answered. Members is its list then; else only the ids of the configuration in the log.
	Running bool     `json:"running"`
	Members []Member `json:"members,omitempty"`
	// Problem is why the directory could not be read, as a sentence's end.
	Problem string `json:"problem,omitempty"`
}

// Testify reads a data directory without changing a byte, and asks the member whose status socket it is given, if it runs: its directory is
// its own then. The caller adds Cluster, Identity and DiskID. An error means that there is nothing to be told.
func Testify(ctx context.Context, dataDir, socket string) (Testimony, error) {
	t := Testimony{Format: testimonyFormat, Time: time.Now().UTC()}
	var err error
	if t.Agent, err = loadAgentFile(filepath.Join(dataDir, "agent.json")); err != nil {
		return t, err
	}
	if s, err := ReadStatus(ctx, socket); err == nil {
		t.Running, t.ClusterID, t.MemberID, t.Members = true, s.ClusterID, s.MemberID, s.Members
		return t, nil
	}
	d, err := readDir(filepath.Join(dataDir, "etcd"))
	if err != nil {
		return t, err
	}
	if d.OpenErr != nil {
		t.Problem = d.OpenErr.Error()
	}
	t.ClusterID, t.MemberID = d.ClusterID, d.MemberID
	for _, id := range d.configuration() {
		t.Members = append(t.Members, Member{ID: id})
	}
	return t, nil
}

// configuration is every member, learners too, that the end of the log knows, whether the last changes were committed or not.
func (d Directory) configuration() []record.MemberID {
	ids := append(append([]record.MemberID{}, d.Voters...), d.Learners...)
	for _, c := range d.Changes {
		if c.Type != "remove" {
			c.Type = "add-voter" // a learner is a member too
		}
		ids = applyChange(ids, c)
	}
	return ids
}

// settled: a member has run on this disk, which proves that its epoch was formed.
func (t Testimony) settled() bool {
	return (t.Agent.Phase == PhaseStarted || t.Agent.Phase == PhaseStopped) && t.Agent.Epoch > 0 && t.Agent.Token != ""
}

// silent: the disk never held anything of this cluster.
func (t Testimony) silent() bool {
	return t.Agent.ClusterUID == "" && t.Agent.Incarnation == 0 && t.Agent.Epoch == 0
}

// String names whose word it is.
func (t Testimony) String() string {
	if t.Agent.Replica == (replica.Place{}) {
		return "the disk without an agent.json"
	}
	return t.Agent.Replica.String()
}

// memberID is the member that the disk holds; 0: none is known.
func (t Testimony) memberID() record.MemberID {
	if t.Agent.MemberID != 0 {
		return t.Agent.MemberID
	}
	return t.MemberID
}
