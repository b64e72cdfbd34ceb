package agent

import (
	"context"
	"fmt"
	"net/http"

	"github.com/quorate/quorate/etcdmember"
)

// ReadExplanation asks the agent on this machine what it saw at its last look, and what follows from it. ErrRefused: it
// has not looked yet.
func ReadExplanation(ctx context.Context, socket string) (etcdmember.Explanation, error) {
	var e etcdmember.Explanation
	err := ask(ctx, socket, http.MethodGet, "/explain", &e)
	return e, err
}

// explain is the agent's own answer.
func (a *Agent) explain() (etcdmember.Explanation, error) {
	a.mu.Lock()
	m, phase := a.membership, a.phase
	a.mu.Unlock()
	if m != nil {
		if e, ok := m.Explain(); ok {
			return e, nil
		}
	}
	return etcdmember.Explanation{}, fmt.Errorf("it is in phase %s and has not looked yet", phase)
}
