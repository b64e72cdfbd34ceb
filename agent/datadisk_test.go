package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
)

// learning is an agent that begins to ask for its data disk's id.
func (v *vm) learning(t *testing.T, ctx context.Context) (a *Agent, stop func()) {
	t.Helper()
	a, in := v.identified()
	return a, a.learnDisk(ctx, in, a.remember)
}

func TestADiskIDThatIsAnsweredAtOnceIsKnownToTheBoot(t *testing.T) {
	v := newVM(t)
	a, stop := v.learning(t, t.Context())
	defer stop()
	s := a.status(t.Context()).Replica
	if a.diskID() != "d1" || s.DiskID != "d1" || s.DiskIDUnknown {
		t.Errorf("%q, status %+v", a.diskID(), s)
	}
}

// The Compute API is away, then slow: the boot goes on after diskPatience, the status says so, and a later answer is
// kept for the rest of the boot.
func TestADiskIDIsLearnedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVM(t)
		begin, asked := time.Now(), 0
		v.diskID = func(ctx context.Context) (string, error) {
			asked++
			switch asked {
			case 1: // no answer at all
				<-ctx.Done()
				if took := time.Since(begin); took != diskTimeout {
					t.Errorf("the first question ended after %s", took)
				}
				return "", context.Cause(ctx)
			case 2, 3, 4, 5, 6, 7, 8, 9:
				return "", errors.New("403")
			}
			return "d1", nil
		}
		a, stop := v.learning(t, t.Context())
		defer stop()
		if took := time.Since(begin); took != diskPatience {
			t.Errorf("the boot waited for %s", took)
		}
		if s := a.status(t.Context()).Replica; a.diskID() != "" || !s.DiskIDUnknown {
			t.Errorf("%q, status %+v", a.diskID(), s)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if a.diskID() != "d1" || asked != 10 || a.status(t.Context()).Replica.DiskIDUnknown {
			t.Fatalf("after %d questions: %q", asked, a.diskID())
		}
		v.diskID = func(context.Context) (string, error) { t.Error("asked for what is remembered"); return "", nil }
		again, stopAgain := v.learning(t, t.Context())
		defer stopAgain()
		if again.diskID() != "d1" {
			t.Errorf("after a restart of the agent: %q", again.diskID())
		}
		v.metadata.self.BootID = "boot2"
		v.diskID = func(context.Context) (string, error) { return "d2", nil }
		next, stopNext := v.learning(t, t.Context())
		defer stopNext()
		if next.diskID() != "d2" {
			t.Errorf("in another boot: %q", next.diskID())
		}
	})
}

func TestStoppingEndsTheQuestionForTheDiskID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVM(t)
		v.diskID = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) }
		_, stop := v.learning(t, t.Context())
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %s", took)
		}
	})
}

// A VM without a data disk of its own has no id to learn, and nothing is said to be missing.
func TestWithoutADataDiskNoIDIsUnknown(t *testing.T) {
	v := newVM(t)
	cfg := v.config()
	open := cfg.Open
	cfg.Open = func(ctx context.Context, self replica.Identity, c *replica.Cluster) (Cloud, error) {
		cloud, err := open(ctx, self, c)
		cloud.DataDisk = nil
		return cloud, err
	}
	a := v.agent()
	a.cfg = cfg
	in, err := a.identify(t.Context(), nothing{})
	if err != nil {
		t.Fatal(err)
	}
	a.learnDisk(t.Context(), in, a.remember)()
	if s := a.status(t.Context()).Replica; a.diskID() != "" || s.DiskIDUnknown {
		t.Errorf("%q, status %+v", a.diskID(), s)
	}
}

func TestWhoMayWriteToADataDisk(t *testing.T) {
	self := replica.Place{Zone: "za", Name: "m1"}
	other := replica.Place{Zone: "zb", Name: "m1"}
	for name, tc := range map[string]struct {
		disk replica.Disk
		want string // empty: this VM alone
	}{
		"this VM alone":                 {replica.Disk{ID: "7", Users: []replica.Place{self}}, ""},
		"the API says who may, as ever": {replica.Disk{ID: "7", Mode: "READ_WRITE_SINGLE"}, ""},
		"a multi-writer disk": {replica.Disk{ID: "7", Mode: "READ_WRITE_MANY"},
			"data disk 7 has access mode READ_WRITE_MANY"},
		"a mode of which nothing is known": {replica.Disk{ID: "7", Mode: "X"}, "data disk 7 has access mode X"},
		"attached to two": {replica.Disk{ID: "7", Users: []replica.Place{self, other}},
			"data disk 7 is attached to zb.m1, too"},
		"attached to another alone (forced)": {replica.Disk{ID: "7", Users: []replica.Place{other}},
			"data disk 7 is attached to zb.m1, too"},
		"attached to nobody (it was detached)": {replica.Disk{ID: "7"}, ""},
	} {
		if got := judgeWriters(tc.disk, self); tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A disk that another VM has, too, is waited for before etcd is started; a member that runs by the time of the answer
// goes on. In both cases it is said until it is over, also after a restart of the agent.
func TestADiskOfTwoWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVM(t)
		v.diskUsers = []replica.Place{v.self.Place, {Zone: "us-central1-b", Name: "other"}}
		said := func(a *Agent) bool {
			return slices.ContainsFunc(a.tracker.All(), func(w replica.Wait) bool {
				return w.Name == "data-disk-shared"
			})
		}
		_, stop := v.learning(t, t.Context())
		stop()
		a, stop := v.learning(t, t.Context()) // after a restart
		defer stop()
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := a.awaitOneWriter(short); err == nil || !said(a) || a.diskID() != "d1" {
			t.Errorf("it would have been started: %v, said: %t, id %q", err, said(a), a.diskID())
		}
		v.diskUsers = v.diskUsers[:1]
		begin := time.Now()
		if err := a.awaitOneWriter(t.Context()); err != nil || time.Since(begin) > 12*time.Second || said(a) {
			t.Errorf("with the disk for itself: %v after %s, said: %t", err, time.Since(begin), said(a))
		}

		late := newVM(t)
		late.diskMode = "READ_WRITE_MANY"
		late.diskID = func(ctx context.Context) (string, error) { return "d1", backoff.Sleep(ctx, 5*time.Second) }
		b, stopLate := late.learning(t, t.Context())
		defer stopLate()
		if err := b.awaitOneWriter(t.Context()); err != nil || said(b) {
			t.Errorf("without an answer: %v, said: %t", err, said(b))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !said(b) {
			t.Error("beside a running member nothing is said")
		}
	})
}
