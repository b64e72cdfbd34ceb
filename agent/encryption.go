package agent

import (
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
)

// decideEncryption says how the apiserver encrypts, for the rest of the agent's life: it is called once, before the
// first start. Keys that a later bundle brings come into force when the agent starts again. Were the file replaced
// earlier, an apiserver would use them after a crash, and the status would not know.
func (a *Agent) decideEncryption(c *replica.Cluster) ([]byte, error) {
	config, does, err := certs.EncryptionConfig(a.files, *c.EncryptionAtRest)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.encryption = &does
	a.mu.Unlock()
	a.cfg.Log.Info("encryption at rest", "writesWith", does.WritesWith, "readsWith", does.ReadsWith)
	return config, nil
}
