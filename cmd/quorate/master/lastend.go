package master

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/durable"
)

// LastEnd is why the agent ended the last time in this boot. An agent that cannot go on ends and is started again a
// second later, so at most moments nobody could be asked why: `quorate status` reads it here.
type LastEnd struct {
	Time  time.Time `json:"time"`
	Code  int       `json:"code"`
	Error string    `json:"error"`
}

func lastEndPath(runDir string) string { return filepath.Join(runDir, "last-end.json") }

// WriteLastEnd keeps the error of an agent that ends; nil, an end in order, removes what an earlier one left. What
// fails here only makes a status poorer.
func WriteLastEnd(runDir string, err error, code int, now time.Time) {
	if err == nil {
		_ = os.Remove(lastEndPath(runDir))
		return
	}
	b, encodeErr := json.Marshal(LastEnd{Time: now.UTC(), Code: code, Error: strings.TrimSpace(err.Error())})
	if encodeErr == nil {
		_ = durable.WriteFile(lastEndPath(runDir), b, 0o600)
	}
}

// ReadLastEnd returns nil where no agent of this boot has ended with an error.
func ReadLastEnd(runDir string) *LastEnd {
	b, err := os.ReadFile(lastEndPath(runDir))
	if err != nil {
		return nil
	}
	var end LastEnd
	if json.Unmarshal(b, &end) != nil {
		return nil
	}
	return &end
}
