package waits

import (
	"errors"
	"strings"
	"sync"

	"github.com/quorate/quorate/internal/replica"
)

// Phased is a source of one who goes through phases. The row of each wait is the phase in which it began.
type Phased struct {
	*Source

	mu    sync.Mutex
	phase string
}

// Enter notes the phase.
func (p *Phased) Enter(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
}

// HoldFor says what is waited for, and for what cause, until Release.
func (p *Phased) HoldFor(name string, cause error, next string) {
	p.mu.Lock()
	row := p.phase
	p.mu.Unlock()
	p.Hold(replica.Wait{Row: row, Name: name, Reason: cause.Error(), Next: next})
}

// HoldWhile holds a wait while there is a cause for it; nil: it is released.
func (p *Phased) HoldWhile(name string, cause error, next string) {
	if cause == nil {
		p.Release(name)
		return
	}
	p.HoldFor(name, cause, next)
}

// OneLine is all faults in one; nil: there is none.
func OneLine(faults []error) error {
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
