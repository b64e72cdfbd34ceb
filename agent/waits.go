package agent

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// agentWaits are what this replica waits for apart from the rows of the membership's table. The row of each is the
// phase in which it began.
type agentWaits struct {
	*waits.Source

	mu    sync.Mutex
	phase Phase
}

// enter notes the phase.
func (w *agentWaits) enter(p Phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = p
}

// hold says what is waited for, until Release.
func (w *agentWaits) hold(name string, cause error, next string) {
	w.mu.Lock()
	row := string(w.phase)
	w.mu.Unlock()
	w.Hold(replica.Wait{Row: row, Name: name, Reason: cause.Error(), Next: next})
}

// blocked is a wait of no phase.
func blocked(name, reason, next string, since time.Time) *replica.Wait {
	return &replica.Wait{Name: name, Reason: reason, Next: next, Since: since}
}

// oneLine is all faults in one; nil: there is none.
func oneLine(faults []error) error {
	var texts []string
	for _, err := range faults {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	if texts == nil {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}
