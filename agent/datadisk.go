package agent

import (
	"context"
	"github.com/quorate/quorate/internal/backoff"
	"time"
)

// dataDisk is what is known of this VM's data disk. The agent's lock guards it.
type dataDisk struct {
	exists bool
	id     string // the Compute API's; empty: not known yet
}

// diskID is the Compute API's id of the data disk; empty while it is not known.
func (a *Agent) diskID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.disk.id
}

// learnDisk asks for the data disk's id until it is known, and has it remembered then. It returns when it is known, or
// after diskPatience; the returned function ends the questions and waits for their end.
func (a *Agent) learnDisk(ctx context.Context, in identified, remember func(identity) error) (stop func()) {
	if in.cloud.DiskID == nil || a.diskID() != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if id, ok := a.askDisk(ctx, in.cloud); ok {
			a.knowDisk(in.identity, id, remember)
		}
	}()
	patience := time.NewTimer(diskPatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	}
	return func() { cancel(); <-done }
}

// askDisk asks until there is an answer, or ctx is done. Each new reason of a failure is logged once.
func (a *Agent) askDisk(ctx context.Context, cloud Cloud) (id string, ok bool) {
	said := ""
	retry := backoff.Backoff{First: firstDiskPause, Most: lastDiskPause}
	for {
		bounded, cancel := context.WithTimeout(ctx, diskTimeout)
		id, err := cloud.DiskID(bounded)
		cancel()
		if err == nil && id != "" {
			return id, true
		}
		if err != nil && err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			a.cfg.Log.Warn("disk id unknown", "err", said)
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-time.After(retry.Next()):
		}
	}
}

// knowDisk has the id from now on, and after a restart of the agent in this boot.
func (a *Agent) knowDisk(known identity, id string, remember func(identity) error) {
	a.mu.Lock()
	a.disk.id = id
	a.mu.Unlock()
	known.DiskID = id
	if err := remember(known); err != nil {
		a.cfg.Log.Warn("remember the data disk's id", "err", err.Error())
	}
	a.cfg.Log.Info("the data disk's id is known", "disk", id)
}
