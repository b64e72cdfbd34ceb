package telling

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// keptReports is a store in memory. It can fail, or not answer until its caller gives up.
type keptReports struct {
	mu      sync.Mutex
	reports []report.Report
	batches []report.Batch
	former  *report.Sighting
	err     error
	hangs   bool
	asked   int
	// noReports refuses reports alone, as a bucket does in which nothing may be overwritten.
	noReports bool
}

func (k *keptReports) call(ctx context.Context, do func()) error {
	k.mu.Lock()
	k.asked++
	hangs, err := k.hangs, k.err
	k.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		do()
	}
	return err
}

func (k *keptReports) WriteReport(ctx context.Context, r report.Report) error {
	if k.noReports {
		return errors.New("403")
	}
	return k.call(ctx, func() { k.reports = append(k.reports, r) })
}

func (k *keptReports) WriteBatch(ctx context.Context, b report.Batch) error {
	return k.call(ctx, func() { k.batches = append(k.batches, b) })
}

func (k *keptReports) Of(ctx context.Context, p replica.Place) (s *report.Sighting, err error) {
	err = k.call(ctx, func() { s = k.former })
	return s, err
}

func (k *keptReports) DropOldEvents(ctx context.Context) (int, error) {
	return 0, k.call(ctx, func() {})
}

// last is the newest report; zero: there is none.
func (k *keptReports) last() report.Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.reports) == 0 {
		return report.Report{}
	}
	return k.reports[len(k.reports)-1]
}

func (k *keptReports) story() (out string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.batches {
		for _, e := range b.Events {
			out += e.Text + "\n"
		}
	}
	return out
}

// world is an agent that has a status, and the log of its reporter.
type world struct {
	mu  sync.Mutex
	now status.Status
	log strings.Builder
}

func (w *world) gather(context.Context) status.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) becomes(change func(*status.Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.now)
}

// Write takes a line of the log.
func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func reporting(t *testing.T, k *keptReports) (w *world, stop func()) {
	t.Helper()
	w, r := reporter(k)
	return w, r.Keep()
}

func reporter(k *keptReports) (*world, *Reporter) {
	self := replica.Identity{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, InstanceID: "101",
		BootID: "boot1"}
	w := &world{now: status.Status{Replica: status.Replica{Identity: self, Phase: "identity"}}}
	r := NewReporter(slog.New(slog.NewTextHandler(w, nil)), "v1", w.gather, func([]report.Event) {})
	r.Open(k)
	return w, r
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func TestAChangeIsReportedWithinTwoSeconds(t *testing.T) {
	k := &keptReports{former: &report.Sighting{Age: 90 * time.Second, Report: report.Report{Ready: true,
		InstanceID: "99", BootID: "boot0"}}}
	w, stop := reporting(t, k)
	eventually(t, "a first report", func() bool { return k.last().InstanceID == "101" })
	w.becomes(func(s *status.Status) { s.Blocked = []replica.Wait{{Name: "record-unreadable", Reason: "503"}} })
	begin := time.Now()
	eventually(t, "the wait is reported", func() bool { return len(k.last().Waits) == 1 })
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	w.becomes(func(s *status.Status) { s.Replica.Phase = "stopping" })
	stop()
	if got := k.last().Phase; got != "stopping" {
		t.Errorf("its last report says phase %q", got)
	}
	if got := k.story(); !strings.Contains(got, "its agent began: instance 101, boot boot1") ||
		!strings.Contains(got, "has stopped in order") {
		t.Errorf("no beginning or no end in %q", got)
	}
}

// What hangs is not said to have stopped in order: the boot that follows finds last words without an orderly end.
func TestAStopThatLeavesAProcessIsNotInOrder(t *testing.T) {
	t.Parallel()
	k := &keptReports{}
	w, r := reporter(k)
	stop := r.Keep()
	eventually(t, "a first report", func() bool { return k.last().InstanceID == "101" })
	w.becomes(func(s *status.Status) { s.Replica.Phase = "stopping" })
	r.NoteStopped(errors.New("stop etcd: it does not end"))
	stop()
	if got := k.story(); strings.Contains(got, "has stopped in order") ||
		!strings.Contains(got, "could not stop everything that it ran: stop etcd: it does not end") {
		t.Errorf("told is %q", got)
	}
}

// An agent that ends without being asked to is no replica that has stopped.
func TestAnEndToBeStartedAgainIsToldAsOne(t *testing.T) {
	t.Parallel()
	k := &keptReports{}
	w, stop := reporting(t, k)
	eventually(t, "a first report", func() bool { return k.last().InstanceID == "101" })
	w.becomes(func(s *status.Status) { s.Replica.Phase, s.Replica.StartsAgain = "stopping", "etcd does not come up" })
	stop()
	if got := k.story(); strings.Contains(got, "has stopped in order") ||
		!strings.Contains(got, "starts again: etcd does not come up") {
		t.Errorf("told is %q", got)
	}
}

// What the VM before said is told before it is overwritten: nobody else can say when it was last there.
func TestTheReportBeforeIsNoted(t *testing.T) {
	t.Parallel()
	k := &keptReports{former: &report.Sighting{Age: 90 * time.Second, Report: report.Report{Ready: true,
		InstanceID: "99", BootID: "boot0"}}}
	_, stop := reporting(t, k)
	defer stop()
	eventually(t, "a first report", func() bool { return k.last().InstanceID == "101" })
	time.Sleep(observePeriod)
	eventually(t, "it is noted", func() bool {
		return strings.Contains(k.story(), "ready, instance 99, boot boot0")
	})
	if again := k.last().BootedAgain; time.Since(again).Abs() > time.Minute {
		t.Errorf("the report says that it booted again at %s", again)
	}
	before := time.Date(2026, 11, 27, 20, 30, 0, 0, time.UTC)
	k = &keptReports{former: &report.Sighting{Report: report.Report{InstanceID: "101", BootID: "boot1",
		BootedAgain: before}}}
	_, stopAgain := reporting(t, k)
	defer stopAgain()
	eventually(t, "the agent was started again in its boot", func() bool { return k.last().BootedAgain.Equal(before) })
}

func TestEventsAreWrittenWhereAReportMayNotBe(t *testing.T) {
	k := &keptReports{noReports: true}
	_, stop := reporting(t, k)
	defer stop()
	eventually(t, "the beginning is written", func() bool { return strings.Contains(k.story(), "its agent began") })
}

func TestAStoreThatFailsOrHangsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]*keptReports{"fails": {err: errors.New("403")}, "hangs": {hangs: true}} {
		t.Run(name, func(t *testing.T) {
			w, stop := reporting(t, k)
			time.Sleep(2 * observePeriod)
			begin := time.Now()
			stop()
			if took := time.Since(begin); took > lastReportTimeout+time.Second {
				t.Errorf("the end took %s", took)
			}
			if n := strings.Count(w.said(), "do not learn"); n > 1 || n == 0 && k.err != nil {
				t.Errorf("it is said %d times:\n%s", n, w.said())
			}
		})
	}
}

// A host that lost its way: the former boot of an instance goes on, and still reaches the bucket.
func TestASupersededBootLeavesTheReportOfTheOneThatCounts(t *testing.T) {
	t.Parallel()
	k := &keptReports{}
	w, stop := reporting(t, k)
	eventually(t, "a first report", func() bool { return k.last().InstanceID == "101" })
	w.becomes(func(s *status.Status) {
		s.Replica.Phase = "etcd"
		s.Blocked = []replica.Wait{{Name: table.WaitSuperseded, Reason: "it was started again on another host"}}
	})
	eventually(t, "an event says it", func() bool { return strings.Contains(k.story(), table.WaitSuperseded) })
	if got := k.last(); got.Phase == "etcd" || len(got.Waits) > 0 {
		t.Errorf("it reports %+v", got)
	}
	w.becomes(func(s *status.Status) { s.Blocked = nil })
	eventually(t, "a report of one that is not superseded", func() bool { return k.last().Phase == "etcd" })
	w.becomes(func(s *status.Status) {
		s.Replica.Phase = "stopping"
		s.Blocked = []replica.Wait{{Name: table.WaitSuperseded}}
	})
	stop()
	if got := k.last().Phase; got != "etcd" {
		t.Errorf("its last report says phase %q", got)
	}
}
