package agent

import (
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
)

// decideEncryption fixes, before the first start of the apiserver, how it encrypts for the rest of the agent's life.
// Keys that a later bundle brings come into force when the agent starts again. Were the file replaced earlier, an
// apiserver would use them after a crash, and the status would not know. plane.mu is held.
func (a *Agent) decideEncryption(c *replica.Cluster) error {
	if a.plane.encryption != nil {
		return nil
	}
	config, does, err := certs.EncryptionConfig(a.files, *c.EncryptionAtRest)
	if err != nil {
		return err
	}
	a.plane.encryption = config
	a.mu.Lock()
	a.encryption = &does
	a.mu.Unlock()
	a.cfg.Log.Info("encryption at rest", "writesWith", does.WritesWith, "readsWith", does.ReadsWith)
	return nil
}
