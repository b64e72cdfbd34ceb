package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/quorate/quorate/etcdmember/table"
)

// LoadAgentFile reads agent.json; the zero value where there is none.
func LoadAgentFile(path string) (table.AgentFile, error) {
	var a table.AgentFile
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("read the agent's file: %w", err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return table.AgentFile{}, fmt.Errorf("decode the agent's file %s: %w", path, err)
	}
	return a, nil
}
