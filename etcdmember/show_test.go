package etcdmember

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
)

// gatedLog takes lines while its gate is open.
type gatedLog struct {
	gate chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

func newGatedLog() *gatedLog { return &gatedLog{gate: make(chan struct{})} }

func (l *gatedLog) Write(p []byte) (int, error) {
	<-l.gate
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// said returns the lines' messages and rows.
func (l *gatedLog) said() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	line := regexp.MustCompile(`msg="?([a-z ]+?)"? row=(\d+) name=(\S+)`)
	for _, m := range line.FindAllStringSubmatch(l.text.String(), -1) {
		out = append(out, strings.Join(m[1:], " "))
	}
	return out
}

// The watchdog asks by Waits. A log that takes no line, such as a journal on a disk that stalls, must not keep the
// answer back.
func TestALogThatIsStuckDoesNotHoldUpWhatIsShown(t *testing.T) {
	for name, do := range map[string]func(m *Membership){
		"a wait of this replica": func(m *Membership) {
			m.reconciler.show(t0, &replica.Wait{Row: "7", Name: "a"})
		},
		"a wait of the leader's loop": func(m *Membership) {
			m.reported.leaderWaits.Only(&replica.Wait{Row: "42", Name: "b"}, t0)
			m.reported.leaderWaits.Only(&replica.Wait{Row: "42", Name: "b"}, t0.Add(leaderPatience))
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := newGatedLog()
			m := New(Config{Log: slog.New(slog.NewTextHandler(log, nil)), Cluster: &replica.Cluster{},
				RunDir: t.TempDir()})
			done := make(chan struct{})
			go func() { defer close(done); do(m) }()
			shown := make(chan struct{})
			go func() {
				defer close(shown)
				for len(m.cfg.Waits.All()) == 0 {
					time.Sleep(time.Millisecond)
				}
			}()
			select {
			case <-shown:
			case <-time.After(etcdtest.Patience):
				t.Error("the log is stuck, and nothing is shown")
			}
			close(log.gate)
			<-done
		})
	}
}

func TestTheLogHearsEachWaitOnce(t *testing.T) {
	log := newGatedLog()
	close(log.gate)
	m := New(Config{Log: slog.New(slog.NewTextHandler(log, nil)), Cluster: &replica.Cluster{}, RunDir: t.TempDir()})
	for i, b := range []*replica.Wait{
		{Row: "7", Name: "a", Reason: "one"}, {Row: "7", Name: "a", Reason: "two"},
		{Row: "8", Name: "a"}, {Row: "8", Name: "b"},
		{Row: "9", Name: table.WaitNoRoom}, {Row: "28", Name: table.WaitNoRoom}, nil, nil, {Row: "7", Name: "a"},
	} {
		m.reconciler.show(t0.Add(time.Duration(i)*time.Minute), b)
	}
	want := []string{
		"blocked 7 a", "blocked 8 a", "blocked 8 b", "blocked 9 " + table.WaitNoRoom, "blocked 28 " + table.WaitNoRoom,
		"no longer blocked 28 " +
			table.WaitNoRoom,
		"blocked 7 a",
	}
	if got := log.said(); !slices.Equal(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}
}
