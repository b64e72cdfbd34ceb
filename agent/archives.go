package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/etcdmember"
)

// archivePurge deletes the archives whose time has come; etcdmember.Membership implements it.
type archivePurge interface {
	PurgeArchives(ctx context.Context) (etcdmember.ArchivesHeld, error)
}

// archives sees that archived directories are purged. Several may ask it what there is.
type archives struct {
	log *slog.Logger

	mu    sync.Mutex
	shown *status.Archives // never written into again
}

// keep purges the archived directories until ctx is done. Nothing waits for it and nothing but ctx ends it: what fails
// is tried again at the next check.
func (a *archives) keep(ctx context.Context, m archivePurge) {
	said := ""
	for {
		held, err := m.PurgeArchives(ctx)
		if ctx.Err() != nil {
			return
		}
		said = a.show(held, err, said)
		select {
		case <-ctx.Done():
			return
		case <-time.After(archivesPeriod):
		}
	}
}

// show shows what there is; the log hears each failure once.
func (a *archives) show(list etcdmember.ArchivesHeld, err error, said string) (says string) {
	a.mu.Lock()
	a.shown = &status.Archives{Count: list.Count, Bytes: list.Bytes, Kept: list.Kept}
	a.mu.Unlock()
	if err == nil {
		return ""
	}
	if says = err.Error(); says != said {
		a.log.Warn("purge the archived directories", "err", says)
	}
	return says
}

// status is what was last found; nil: nothing yet.
func (a *archives) status() *status.Archives {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shown
}
