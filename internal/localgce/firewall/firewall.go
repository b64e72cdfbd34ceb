// Package firewall has the fabric's kernel filter what reaches a project's VMs, as the firewall rules of a VPC network
// do.
//
//	rules, VMs ── Render ──▶ nft: one chain, for what is forwarded to a VM or sent to it by the fabric
//
// The VM that a packet goes to is the next hop of its route, not its destination: what is balanced keeps the balanced
// address. A connection is judged by its first packet, and goes on whatever becomes of the rules. What no rule lets in
// is dropped without a word, and what a VM sends out is let out.
package firewall

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/network"
)

// period is the time between two comparisons of what there is with what the kernel has, and retryPause that after a
// failure.
const period, retryPause = 100 * time.Millisecond, time.Second

// State is what is in force.
type State struct {
	// Ruled: the network has, or had, rules; without any everything gets everywhere.
	Ruled bool
	Rules []instance.FirewallRule
	VMs   []instance.VM
}

// Run keeps the kernel of the fabric's network namespace as state says, until the context ends.
func Run(ctx context.Context, namespace string, state func() State, report func(error)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	has, retry := Render(State{}), time.Time{}
	for {
		if script := Render(state()); script != has && time.Now().After(retry) {
			if err := network.NFT(ctx, namespace, script); err == nil {
				has = script
			} else if retry = time.Now().Add(retryPause); ctx.Err() == nil {
				report(fmt.Errorf("put firewall rules in force: %w", err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
