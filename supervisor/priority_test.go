package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// standing is what a process and all its threads have: oom_score_adj and niceness.
func standing(t *testing.T, pid int) (score int, nice map[int]bool) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	if err != nil {
		t.Fatal(err)
	}
	if score, err = strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
		t.Fatal(err)
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads %v: %v", threads, err)
	}
	nice = map[int]bool{}
	for _, thread := range threads {
		id, _ := strconv.Atoi(filepath.Base(thread))
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, id)
		if err != nil {
			t.Fatal(err)
		}
		nice[20-raw] = true
	}
	return score, nice
}

// The test is without effect on niceness where it is itself run at 19, and on the score where it is run at 1000.
func TestAProcessGivesWayToItsSupervisorAsItsSpecSays(t *testing.T) {
	inGroups(t, func(t *testing.T, cfg Config) {
		ownScore, ownNice := standing(t, os.Getpid())
		if len(ownNice) != 1 {
			t.Skipf("the threads of this program differ: %v", ownNice)
		}
		dir := t.TempDir()
		s := begin(t, cfg)
		for name, c := range map[string]struct{ score, nice int }{
			"as-it-is": {0, 0}, "behind": {500, 5}, "far-behind": {5000, 50},
		} {
			file := filepath.Join(dir, name)
			spec := childSpec(t, name, "polite", file, name)
			spec.OOMScore, spec.Nice = c.score, c.nice
			start(t, s, spec)
			eventually(t, "it runs", func() bool { return len(notes(t, file)) == 1 })
			score, nice := standing(t, pidOf(t, s, name))
			if want := min(ownScore+c.score, mostOOMScore); score != want {
				t.Errorf("%s: oom_score_adj is %d, want %d", name, score, want)
			}
			for own := range ownNice {
				if want := min(own+c.nice, mostNice); len(nice) != 1 || !nice[want] {
					t.Errorf("%s: the niceness of its threads is %v, want %d", name, nice, want)
				}
			}
		}
	})
}
