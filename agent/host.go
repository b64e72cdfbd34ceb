package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/waits"
)

// noMaintenance is what the metadata says while the host plans nothing.
const noMaintenance = "NONE"

// spotVM is the wait for a VM that is not a Spot VM.
const spotVM = "spot-vm"

// host is what the VM's host may do to it.
type host struct {
	log      *slog.Logger
	waits    *waits.Phased
	metadata Metadata
	// handOver moves etcd's leadership to another voter.
	handOver func(ctx context.Context)

	mu   sync.Mutex
	spot bool // a stop may take 30 s alone
}

// keep hands etcd's leadership to another voter before the VM's host is maintained, until the returned
// function is called. Google says so a minute before, and only to a VM that has asked since the last time: it is asked
// from the first phase on. While the VM moves it stands still, and a leader that stands still costs an election.
func (h *host) keep(ctx context.Context) (stop func()) {
	events := make(chan string, 1)
	watch := func(ctx context.Context) {
		// its only error is ctx's
		_ = h.metadata.WatchMaintenanceEvent(ctx, func(event string) {
			select {
			case events <- event:
			case <-ctx.Done():
			}
		})
	}
	return background(ctx, watch, func(ctx context.Context) { h.heedMaintenance(ctx, events) }, h.learnSpot)
}

// heedMaintenance hands over when an event is announced, and again at each maintenancePeriod while it lasts: leadership
// may come back, and a member may have started since.
func (h *host) heedMaintenance(ctx context.Context, events <-chan string) {
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
				h.log.Warn("the host will be maintained: etcd's leadership goes to another replica", "event", event)
			case planned == "" && was != "":
				h.log.Info("the host's maintenance is over")
			}
		case <-tick.C:
		}
		if planned != "" {
			h.handOver(ctx)
		}
	}
}

// learnSpot asks whether this is a Spot VM until it is known, and says so where it is.
func (h *host) learnSpot(ctx context.Context) {
	pause := backoff.Backoff{First: firstSpotPause, Most: lastSpotPause}
	for {
		spot, err := h.metadata.Spot(ctx)
		if err == nil {
			h.mu.Lock()
			h.spot = spot
			h.mu.Unlock()
			if spot {
				h.waits.HoldFor(spotVM, errors.New("this is a Spot VM: Compute Engine may stop it at any time, together "+
					"with others, and cuts its power within 30 s"), "A stop is shortened to 25 s: leases run out by "+
					"themselves, and requests are broken off after 6 s. Recreate it as a standard VM with the same "+
					"name and disk.")
			}
			return
		}
		h.log.Info("whether this is a Spot VM is not known yet", "err", err.Error())
		if backoff.Sleep(ctx, pause.Next()) != nil {
			return
		}
	}
}

func (h *host) isSpot() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spot
}
