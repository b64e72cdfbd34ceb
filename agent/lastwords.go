package agent

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/internal/lastwords"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/support"
)

// LastWordsDir is where a data disk has the ends of the logs.
func LastWordsDir(dataDir string) string { return filepath.Join(dataDir, "lastwords") }

// keepLastWords keeps the ends of the logs on the data disk from now on, and has people outside told how the boot
// before this one ended. It returns at once. What is kept never begins the wait for room.
func (a *Agent) keepLastWords(in identified) {
	dir := in.cluster.Etcd.DataDir
	a.cfg.LastWords.Open(lastwords.Place{
		Dir:   LastWordsDir(dir),
		Boot:  lastwords.Boot{ID: in.self.BootID, Instance: in.self.InstanceID},
		Room:  func() bool { return datadisk.HasRoom(dir, lastwords.MostBytes) },
		Found: func(f lastwords.Former) { a.reporter.Note(wordsOf(f, in.self, in.cluster, time.Now())...) },
		Log:   a.cfg.Log,
	})
}

// wordsOf are the events of what an earlier boot left: none where it left nothing. A log's line may say anything, so
// the rules of `quorate support` are applied before those of the reports.
func wordsOf(f lastwords.Former, self replica.Identity, c *replica.Cluster, now time.Time) (out []report.Event) {
	if f.Boot.ID == "" {
		return nil
	}
	names := []string{c.Name, self.Project, self.Name, self.Zone, self.Place.String(), f.Boot.Instance}
	for name := range c.Components {
		names = append(names, name)
	}
	filter := support.NewFilter(names, support.Configured(c))
	add := func(source, text string) {
		out = append(out, report.Event{At: now.UTC(), Kind: report.LastWords, Subject: source,
			Text: report.Clean(text)})
	}
	if f.InOrder {
		return nil // how it ended is known, and what it said before explains nothing
	}
	add("", fmt.Sprintf("its disk has the last words of boot %.8s, instance %s, which ended without being asked to; "+
		"`quorate support` on it takes more of them", f.Boot.ID, f.Boot.Instance))
	for _, e := range f.Excerpts {
		for _, line := range e.Lines {
			add(e.Source, fmt.Sprintf("boot %.8s, %s: %s", f.Boot.ID, e.Source, filter.Text(line)))
		}
	}
	return out
}
