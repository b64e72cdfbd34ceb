package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/etcdmember"
)

// shelves is what each check of the archives finds; the last one repeats.
type shelves struct {
	found []etcdmember.ArchivesHeld
	errs  []error
	looks int
}

func (s *shelves) PurgeArchives(context.Context) (etcdmember.ArchivesHeld, error) {
	n := min(s.looks, len(s.found)-1)
	s.looks++
	return s.found[n], s.errs[n]
}

// The archives are checked each minute, whatever fails, and shown; a failure that stays is one line.
func TestTheArchiveIsLookedAfterEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVM(t)
		a := v.agent()
		log := &strings.Builder{}
		a.archives.log = slog.New(slog.NewTextHandler(log, nil))
		if got := scraped(t, a); strings.Contains(got, "\nquorate_archive_bytes") ||
			a.status(t.Context()).Archives != nil {
			t.Errorf("it shows what it cannot know:\n%s", got)
		}
		broken := errors.New("an I/O error")
		s := &shelves{
			found: []etcdmember.ArchivesHeld{{Count: 3, Bytes: 300}, {Count: 3, Bytes: 300}, {Count: 3, Bytes: 300},
				{Count: 2, Bytes: 200, Kept: "why"}},
			errs: []error{broken, broken, nil, nil},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute+time.Second)
		defer cancel()
		a.archives.keep(ctx, s)
		if s.looks != 10 || strings.Count(log.String(), "an I/O error") != 1 {
			t.Errorf("%d looks, log\n%s", s.looks, log)
		}
		if got := a.status(t.Context()).Archives; got == nil ||
			*got != (status.Archives{Count: 2, Bytes: 200, Kept: "why"}) {
			t.Errorf("status %+v", got)
		}
		if got := scraped(t, a); !strings.Contains(got, "\nquorate_archive_bytes 200\n") {
			t.Errorf("metrics\n%s", got)
		}
	})
}
