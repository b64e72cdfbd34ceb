package etcdmember

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/quorate/quorate/internal/durable"
)

// loadAgentFile reads agent.json; the zero value where there is none.
func loadAgentFile(path string) (AgentFile, error) {
	var a AgentFile
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("read the agent's file: %w", err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return AgentFile{}, fmt.Errorf("decode the agent's file %s: %w", path, err)
	}
	return a, nil
}

// setAgent changes agent.json, with fsync, and only then what this process believes of it. Whose it is changes only where an
// incarnation is taken: anything else would make another replica's disk, or a disk after a reboot, look like ours.
func (m *Membership) setAgent(change func(*AgentFile)) error {
	a := m.agent
	change(&a)
	if a == m.agent {
		return nil
	}
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the agent's file: %w", err)
	}
	if err := durable.WriteFile(m.agentPath(), b, 0o600); err != nil {
		return err
	}
	m.agent = a
	return nil
}
