package agent

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/backoff"
)

// noMaintenance is what the metadata says while the host plans nothing.
const noMaintenance = "NONE"

// spotVM is the wait for a VM that is not a Spot VM.
const spotVM = "spot-vm"

// keepMaintenance hands etcd's leadership to another voter before the VM's host is maintained, until the returned
// function is called. Google says so a minute before, and only to a VM that has asked since the last time: it is asked
// from the first phase on. While the VM moves it stands still, and a leader that stands still costs an election.
func (a *Agent) keepMaintenance(ctx context.Context) (stop func()) {
	events := make(chan string, 1)
	watch := func(ctx context.Context) {
		// its only error is ctx's
		_ = a.cfg.Metadata.WatchMaintenanceEvent(ctx, func(event string) {
			select {
			case events <- event:
			case <-ctx.Done():
			}
		})
	}
	return background(ctx, watch, func(ctx context.Context) { a.heedMaintenance(ctx, events) }, a.learnSpot)
}

// heedMaintenance hands over when an event is announced, and again at each maintenancePeriod while it lasts: leadership
// may come back, and a member may have started since.
func (a *Agent) heedMaintenance(ctx context.Context, events <-chan string) {
	tick := time.NewTicker(maintenancePeriod)
	defer tick.Stop()
	planned := ""
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			was := planned
			if planned = event; event == noMaintenance {
				planned = ""
			}
			switch {
			case planned != "" && planned != was:
				a.cfg.Log.Warn("the host will be maintained: etcd's leadership goes to another replica", "event", event)
			case planned == "" && was != "":
				a.cfg.Log.Info("the host's maintenance is over")
			}
		case <-tick.C:
		}
		if planned != "" {
			a.handOver(ctx)
		}
	}
}

// handOver moves etcd's leadership to another voter, where there is a member here and it has it.
func (a *Agent) handOver(ctx context.Context) {
	m := a.startedMember()
	if m == nil {
		return
	}
	if err := member.HandOver(ctx, m.StatusSocket()); err != nil && ctx.Err() == nil {
		a.cfg.Log.Info("leadership stays here", "reason", err.Error())
	}
}

// learnSpot asks whether this is a Spot VM until it is known, and says so where it is.
func (a *Agent) learnSpot(ctx context.Context) {
	pause := backoff.Backoff{First: firstSpotPause, Most: lastSpotPause}
	for {
		spot, err := a.cfg.Metadata.Spot(ctx)
		if err == nil {
			a.mu.Lock()
			a.spot = spot
			a.mu.Unlock()
			if spot {
				a.waits.HoldFor(spotVM, errors.New("this is a Spot VM: Compute Engine may stop it at any time, together "+
					"with others, and cuts its power within 30 s"), "A stop is shortened to 25 s: leases run out by "+
					"themselves, and requests are broken off after 6 s. Recreate it as a standard VM with the same "+
					"name and disk.")
			}
			return
		}
		a.cfg.Log.Info("whether this is a Spot VM is not known yet", "err", err.Error())
		if backoff.Sleep(ctx, pause.Next()) != nil {
			return
		}
	}
}

func (a *Agent) isSpot() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spot
}
