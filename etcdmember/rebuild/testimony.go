package rebuild

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/etcdmember/datadir"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// testimonyFormat is raised when an older quorate would misread a newer testimony.
const testimonyFormat = 1

// Testimony is what one replica's data disk, and the member that runs on it, say of the cluster: the part of the record
// that does not depend on the record. It holds no key and no secret.
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
	Agent table.AgentFile `json:"agent"`
	// ClusterID and MemberID are the running member's word, or else the log's; 0: there is neither.
	ClusterID record.MemberID `json:"clusterID,omitempty"`
	MemberID  record.MemberID `json:"memberID,omitempty"`
	// Running says that the member ran and answered. Members is its list then; else only the ids of the configuration
	// in the log.
	Running bool           `json:"running"`
	Members []table.Member `json:"members,omitempty"`
	// Problem is why the directory could not be read, as a sentence's end.
	Problem string `json:"problem,omitempty"`
}

// ErrNoDisk is in every error of a data directory that is not there, or of one that is empty where a disk should be
// mounted: a path that was mistyped, or a disk that was not mounted, must not become a testimony that the disk is
// empty.
var ErrNoDisk = errors.New("no data disk is there")

// Testify reads a data directory without changing a byte, and asks the member whose status socket it is given, if it
// runs: its directory is its own then. wanted is the disk that the document wants mounted; empty: none. An empty
// directory speaks for it only if it is a mount point. The caller adds Cluster, Identity and DiskID. An error means
// that there is nothing to be told.
func Testify(ctx context.Context, dataDir, wanted, socket string) (Testimony, error) {
	t := Testimony{Format: testimonyFormat, Time: time.Now().UTC()}
	err := findDisk(dataDir, wanted)
	if err != nil {
		return t, err
	}
	if t.Agent, err = datadir.LoadAgentFile(datadir.Dir(dataDir).AgentFile()); err != nil {
		return t, err
	}
	if s, err := member.ReadStatus(ctx, socket); err == nil {
		t.Running, t.ClusterID, t.MemberID, t.Members = true, s.ClusterID, s.MemberID, s.Members
		return t, nil
	}
	d, err := datadir.Read(datadir.Dir(dataDir).Etcd())
	switch {
	case err != nil && d.MemberID == 0:
		return t, err
	case err != nil: // its log was read, which says whose it is
		t.Problem = err.Error()
	case d.OpenErr != nil:
		t.Problem = d.OpenErr.Error()
	}
	t.ClusterID, t.MemberID = d.ClusterID, d.MemberID
	for _, id := range d.Configuration() {
		t.Members = append(t.Members, table.Member{ID: id})
	}
	return t, nil
}

// findDisk tells a data directory from a folder that just has its name. One that holds what a member wrote speaks for
// itself, wherever it lies: it may be a copy that somebody has saved from a disk.
func findDisk(dataDir, wanted string) error {
	switch info, err := os.Stat(dataDir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no such folder", ErrNoDisk)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: it is not a folder", ErrNoDisk)
	case wanted == "":
		return nil
	}
	for _, name := range []string{"agent.json", "etcd"} {
		if _, err := os.Lstat(filepath.Join(dataDir, name)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	mounted, err := isMountPoint(dataDir)
	if err == nil && !mounted {
		err = fmt.Errorf("%w: the folder has neither agent.json nor etcd in it, and the disk %s is not mounted at it",
			ErrNoDisk, wanted)
	}
	return err
}

// isMountPoint asks the kernel, which knows mount points by their full names.
func isMountPoint(dir string) (bool, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	if full, err = filepath.EvalSymlinks(full); err != nil {
		return false, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return datadir.MountedAt(string(mounts), full), err
}

// settled: a member has run on this disk, which proves that its epoch was formed.
func (t Testimony) settled() bool {
	return (t.Agent.Phase == table.PhaseStarted ||
		t.Agent.Phase == table.PhaseStopped) && t.Agent.Epoch > 0 && t.Agent.Token != ""
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
