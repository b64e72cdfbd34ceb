package etcdmember

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// supersededNote lets the rest of this boot know that this replica was superseded, also an agent that is started again
// while the record cannot be read: row 1 would start the member in addition to the one that has taken its place. It is
// a file on the tmpfs, with this boot's id.
type supersededNote struct {
	log          *slog.Logger
	path, bootID string
	yes          bool
}

// readSuperseded reads what note wrote in this boot.
func readSuperseded(cfg Config) supersededNote {
	n := supersededNote{log: cfg.Log, path: filepath.Join(cfg.RunDir, "superseded"), bootID: cfg.Me.BootID}
	b, err := os.ReadFile(n.path)
	n.yes = err == nil && strings.TrimSpace(string(b)) == n.bootID
	return n
}

// note writes that it was.
func (n *supersededNote) note() {
	if n.yes {
		return
	}
	n.yes = true
	if err := os.WriteFile(n.path, []byte(n.bootID+"\n"), 0o600); err != nil {
		n.log.Warn("note that this replica is superseded", "err", err.Error())
	}
}
