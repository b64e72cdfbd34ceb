package etcdmember

import (
	"encoding/json"
	"fmt"

	"github.com/quorate/quorate/etcdmember/table"
)

// setAgent changes agent.json, with fsync, and only then what this process believes of it. Whose it is changes only
// where an incarnation is taken: anything else would make another replica's disk, or a disk after a reboot, look like
// ours. After a write that failed the next one is made whatever it holds, because the former may be on the disk or may
// not last.
func (m *Membership) setAgent(change func(*table.AgentFile)) error {
	a := m.agent
	change(&a)
	if a == m.agent && !m.unsure {
		return nil
	}
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the agent's file: %w", err)
	}
	m.unsure = true
	if err := m.disk.write(m.agentPath(), b, 0o600); err != nil {
		return err
	}
	m.agent, m.agentErr, m.unsure = a, nil, false
	return nil
}
