package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/durable"
)

const (
	// crashLooping is the wait of an agent that has been started again and again.
	crashLooping     = "agent-crash-looping"
	crashLoopingNext = "It goes on by itself. Why the agent before it ended stands under STARTED AGAIN, and in the log."
)

// starts are the starts of agents in this boot of the VM since the member last ran for a while. They are on a tmpfs.
type starts struct {
	Count int       `json:"count"`
	Last  time.Time `json:"last"`
}

// pacer keeps agents that end soon after their start, one after the other, from doing so every second.
type pacer struct {
	log      *slog.Logger
	progress *progress
	// path is where the starts are noted.
	path string
}

func newPacer(log *slog.Logger, p *progress, runDir string) *pacer {
	return &pacer{log: log, progress: p, path: filepath.Join(runDir, "starts.json")}
}

// pace notes this start, and holds it up where those before it came to nothing. The first two are not held up: a boot
// is how a replica is repaired.
func (p *pacer) pace(ctx context.Context) {
	var before starts
	b, err := os.ReadFile(p.path)
	if err == nil {
		err = json.Unmarshal(b, &before)
	}
	if err != nil {
		before = starts{} // the first start, or one that can be paced only from here on
	}
	pause := before.pause(time.Now())
	p.note(starts{Count: before.Count + 1, Last: time.Now().Add(pause)})
	if pause <= 0 {
		return
	}
	p.progress.enter(PhasePacing)
	held := p.progress.waits
	held.HoldFor(crashLooping, fmt.Errorf("the agent was started %d times, and ended soon each time; it begins in %s",
		before.Count, pause.Round(time.Second/10)), crashLoopingNext)
	defer held.Release(crashLooping)
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// pause is how long the next start has to wait. The clock may have been set meanwhile.
func (s starts) pause(now time.Time) time.Duration {
	if s.Count == 0 {
		return 0
	}
	distance := min(firstDistance<<min(s.Count-1, 10), lastDistance)
	distance -= rand.N(distance / 5)
	return min(max(distance-now.Sub(s.Last), 0), lastDistance)
}

func (p *pacer) note(s starts) {
	b, err := json.Marshal(s)
	if err == nil {
		err = durable.WriteFile(p.path, b, 0o600)
	}
	if err != nil {
		p.log.Warn("note the start", "err", err.Error())
	}
}

// forget forgets the starts: a start too many is counted, at worst.
func (p *pacer) forget() { _ = os.Remove(p.path) }

// forgetLater forgets them once the member has run for a while.
func (p *pacer) forgetLater(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(calmAfter):
		p.forget()
	}
}
