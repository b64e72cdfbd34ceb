package acts

import "github.com/quorate/quorate/etcdmember/table"

// AgentStore is agent.json, and what this process believes that it holds. It is used by one goroutine.
type AgentStore struct {
	// File is what was read, or written since. Err: it is there and cannot be read.
	File table.AgentFile
	Err  error

	write  func(table.AgentFile) error // durable when it returns
	unsure bool                        // a write failed: what the disk holds is not known
}

// NewAgentStore writes with write, which may take effect though it fails. Nothing is read yet.
func NewAgentStore(write func(table.AgentFile) error) *AgentStore { return &AgentStore{write: write} }

// Set changes agent.json, and only then what this process believes of it. Whose it is changes only where an incarnation
// is taken: anything else would take another replica's disk, or a disk after a reboot, for ours. After a write
// that failed the next one is made whatever it holds, because the former may be on the disk or may not last.
func (s *AgentStore) Set(change func(*table.AgentFile)) error {
	a := s.File
	change(&a)
	if a == s.File && !s.unsure {
		return nil
	}
	s.unsure = true
	if err := s.write(a); err != nil {
		return err
	}
	s.File, s.Err, s.unsure = a, nil, false
	return nil
}
