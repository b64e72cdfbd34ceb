package agent

import (
	"context"
	"fmt"
	"net/http"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/supervisor"
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

// Explain looks by itself, for a machine on which no agent runs: it reads what a boot would read, and touches nothing.
func Explain(ctx context.Context, cfg Config) (etcdmember.Explanation, error) {
	a := newAgent(cfg, supervisor.New(supervisor.Config{Log: cfg.Log, LogDir: cfg.LogDir}))
	id, err := a.askIdentity(ctx)
	if err != nil {
		return etcdmember.Explanation{}, fmt.Errorf("find out who this VM is: %w", err)
	}
	in, err := a.open(ctx, id)
	if err != nil {
		return etcdmember.Explanation{}, err
	}
	defer a.learnDisk(ctx, in, func(identity) error { return nil })()
	member := a.memberConfig(in)
	member.ReadOnly = true
	a.membership = etcdmember.New(member)
	return a.membership.Look(ctx), nil
}
