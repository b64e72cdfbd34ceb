package agent

import (
	"log/slog"
	"sync"

	"github.com/quorate/quorate/certs"
)

// encryption is how the apiserver encrypts. Several may ask it what was decided.
type encryption struct {
	log *slog.Logger

	mu   sync.Mutex
	does *certs.Encryption // what the apiserver does since its start; nil before
}

// decide says how the apiserver encrypts, for the rest of the agent's life: it is called once, before the first start.
// Keys that a later bundle brings come into force when the agent starts again. Were the file replaced earlier, an
// apiserver would use them after a crash, and the status would not know.
func (e *encryption) decide(files certs.Files, atRest bool) ([]byte, error) {
	config, does, err := certs.EncryptionConfig(files, atRest)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.does = &does
	e.mu.Unlock()
	e.log.Info("encryption at rest", "writesWith", does.WritesWith, "readsWith", does.ReadsWith)
	return config, nil
}

// decided is what was decided; nil: nothing yet.
func (e *encryption) decided() *certs.Encryption {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.does
}
