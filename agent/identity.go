package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/durable"
	"github.com/quorate/quorate/internal/replica"
)

// identity is what the agent remembers of its identity for the rest of this boot, so that its restart needs no cloud
// service. It is on a tmpfs: another boot asks again.
type identity struct {
	Self     replica.Identity `json:"self"`
	Document string           `json:"document"`
	DiskID   string           `json:"diskID"`
	// ImageDisk is this boot's, for the commands that load the document again.
	ImageDisk datadisk.Image `json:"imageDisk,omitzero"`
}

func (id identity) sameBoot(other identity) bool {
	return id.Self.InstanceID == other.Self.InstanceID && id.Self.BootID == other.Self.BootID
}

// memory asks the metadata server who this is, and remembers it in runDir.
type memory struct {
	log      *slog.Logger
	metadata Metadata
	runDir   string
}

// ask asks the metadata server, also when it is known who this is: the configuration may have changed, and
// starting again is how a change comes into force. Only where it does not answer, what was remembered holds.
func (m memory) ask(ctx context.Context) (identity, error) {
	known, ok := remembered(m.runDir)
	if !ok {
		return m.askMetadata(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, etcdmember.RestartPatience)
	defer cancel()
	id, err := m.askMetadata(bounded)
	switch {
	case err != nil:
		if ctx.Err() != nil {
			return identity{}, err
		}
		m.log.Warn("the metadata server does not answer: going on as before the restart", "err", err.Error())
		return known, nil
	case id.sameBoot(known):
		id.DiskID = known.DiskID
	}
	return id, nil
}

func (m memory) askMetadata(ctx context.Context) (identity, error) {
	self, err := m.metadata.Identity(ctx)
	if err != nil {
		return identity{}, err
	}
	document, _, err := m.metadata.Attribute(ctx, ClusterAttribute)
	if err != nil {
		return identity{}, err
	}
	return identity{Self: self, Document: document}, nil
}

func identityPath(runDir string) string { return filepath.Join(runDir, "identity.json") }

// remembered is the identity that an earlier agent of this boot found out.
func remembered(runDir string) (id identity, ok bool) {
	b, err := os.ReadFile(identityPath(runDir))
	if err != nil {
		return id, false
	}
	err = json.Unmarshal(b, &id)
	return id, err == nil && id.Self.InstanceID != ""
}

// Remembered is what the agent with this run folder found out in this boot: who the VM is, the cluster's document, and
// the id of the data disk. A command on the VM uses it in place of asking again. ok is false where no agent has come so
// far yet.
func Remembered(runDir, baked string) (self replica.Identity, c *replica.Cluster, diskID string, ok bool, err error) {
	id, ok := remembered(runDir)
	if !ok {
		return self, nil, "", false, nil
	}
	c, err = loadCluster(baked, id.Document, id.ImageDisk)
	return id.Self, c, id.DiskID, true, err
}

// keep remembers it for the next agent of this boot.
func (m memory) keep(id identity) error {
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return durable.WriteFile(identityPath(m.runDir), b, 0o600)
}
