package agent

import (
	"context"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/etcdmember"
)

// archivePurge deletes the archives whose time has come; etcdmember.Membership implements it.
type archivePurge interface {
	PurgeArchives(ctx context.Context) (etcdmember.ArchivesHeld, error)
}

// keepArchives purges the archived directories until ctx is done. Nothing waits for it and nothing but ctx ends it:
// what fails is tried again at the next check.
func (a *Agent) keepArchives(ctx context.Context, m archivePurge) {
	said := ""
	for {
		archives, err := m.PurgeArchives(ctx)
		if ctx.Err() != nil {
			return
		}
		said = a.showArchives(archives, err, said)
		select {
		case <-ctx.Done():
			return
		case <-time.After(archivesPeriod):
		}
	}
}

// showArchives shows what there is; the log hears each failure once.
func (a *Agent) showArchives(list etcdmember.ArchivesHeld, err error, said string) (says string) {
	a.mu.Lock()
	a.archives = &status.Archives{Count: list.Count, Bytes: list.Bytes, Kept: list.Kept}
	a.mu.Unlock()
	if err == nil {
		return ""
	}
	if says = err.Error(); says != said {
		a.cfg.Log.Warn("purge the archived directories", "err", says)
	}
	return says
}
