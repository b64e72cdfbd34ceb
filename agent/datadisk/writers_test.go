package datadisk

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// watched is a disk, and what it waits for.
type watched struct {
	*Disk
	tracker *waits.Tracker
}

func newDisk(image Image) watched {
	log := slog.New(slog.DiscardHandler)
	tracker := waits.New(log, "")
	return watched{New(log, &waits.Phased{Source: tracker.Source("agent", "phase", 0)}, image), tracker}
}

// diskIn is the disk data, as an image mounts it at dir/data, of a VM that knows no other place than dir.
func diskIn(t *testing.T) (d watched, dir string) {
	t.Helper()
	dir = t.TempDir()
	d = newDisk(Image{Device: "data", Dir: filepath.Join(dir, "data"), Unit: "data.mount"})
	d.places = places{byID: dir, mountinfo: filepath.Join(dir, "mountinfo")}
	return d, dir
}

// vm is a VM whose agent starts again and again.
type vm struct {
	self       replica.Place
	id         func(context.Context) (string, error)
	mode       string
	users      []replica.Place
	remembered string
	beside     time.Duration // how long Learn itself held the boot up
}

func newVM() *vm {
	return &vm{self: replica.Place{Zone: "us-central1-a", Name: "master-a"},
		id: func(context.Context) (string, error) { return "d1", nil }}
}

// learning is a disk that is asked for, at the time at which a boot goes on.
func (v *vm) learning(ctx context.Context) (d watched, stop func()) {
	d = newDisk(Image{})
	d.Open(true, v.remembered)
	ask := func(ctx context.Context) (replica.Disk, error) {
		id, err := v.id(ctx)
		return replica.Disk{ID: id, Mode: v.mode, Users: v.users}, err
	}
	begin := time.Now()
	stop = d.Learn(ctx, v.self, ask, func(id string) error { v.remembered = id; return nil })
	v.beside = time.Since(begin)
	_ = d.OneWriter(ctx)
	return d, stop
}

func TestADiskIDThatIsAnsweredAtOnceIsKnownToTheBoot(t *testing.T) {
	d, stop := newVM().learning(t.Context())
	defer stop()
	if d.ID() != "d1" || d.IDUnknown() {
		t.Errorf("%q, unknown: %t", d.ID(), d.IDUnknown())
	}
}

// The Compute API is away, then slow: the boot goes on after patience, the status says so, and a later answer is
// kept for the rest of the boot.
func TestADiskIDIsLearnedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVM()
		begin, asked := time.Now(), 0
		v.id = func(ctx context.Context) (string, error) {
			asked++
			switch asked {
			case 1: // no answer at all
				<-ctx.Done()
				if took := time.Since(begin); took != askTimeout {
					t.Errorf("the first question ended after %s", took)
				}
				return "", context.Cause(ctx)
			case 2, 3, 4, 5, 6, 7, 8, 9:
				return "", errors.New("403")
			}
			return "d1", nil
		}
		a, stop := v.learning(t.Context())
		defer stop()
		if took := time.Since(begin); took != patience || v.beside != 0 {
			t.Errorf("the boot waited for %s, of that %s before anything else was done", took, v.beside)
		}
		if a.ID() != "" || !a.IDUnknown() {
			t.Errorf("%q, unknown: %t", a.ID(), a.IDUnknown())
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if a.ID() != "d1" || asked != 10 || a.IDUnknown() {
			t.Fatalf("after %d questions: %q", asked, a.ID())
		}
		v.id = func(context.Context) (string, error) { t.Error("asked for what is remembered"); return "", nil }
		again, stopAgain := v.learning(t.Context())
		defer stopAgain()
		if again.ID() != "d1" {
			t.Errorf("after a restart of the agent: %q", again.ID())
		}
		v.remembered = "" // of another boot
		v.id = func(context.Context) (string, error) { return "d2", nil }
		next, stopNext := v.learning(t.Context())
		defer stopNext()
		if next.ID() != "d2" {
			t.Errorf("in another boot: %q", next.ID())
		}
	})
}

func TestStoppingEndsTheQuestionForTheDiskID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVM()
		v.id = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) }
		_, stop := v.learning(t.Context())
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %s", took)
		}
	})
}

// A VM without a data disk of its own has no id to learn, and nothing is said to be missing.
func TestWithoutADataDiskNoIDIsUnknown(t *testing.T) {
	d := newDisk(Image{})
	d.Open(false, "")
	d.Learn(t.Context(), newVM().self, nil, nil)()
	if d.ID() != "" || d.IDUnknown() {
		t.Errorf("%q, unknown: %t", d.ID(), d.IDUnknown())
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
		v := newVM()
		v.users = []replica.Place{v.self, {Zone: "us-central1-b", Name: "other"}}
		said := func(a watched) bool {
			return slices.ContainsFunc(a.tracker.All(), func(w replica.Wait) bool {
				return w.Name == "data-disk-shared"
			})
		}
		_, stop := v.learning(t.Context())
		stop()
		a, stop := v.learning(t.Context()) // after a restart
		defer stop()
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := a.AwaitOneWriter(short); err == nil || !said(a) || a.ID() != "d1" {
			t.Errorf("it would have been started: %v, said: %t, id %q", err, said(a), a.ID())
		}
		v.users = v.users[:1]
		begin := time.Now()
		if err := a.AwaitOneWriter(t.Context()); err != nil || time.Since(begin) > 12*time.Second || said(a) {
			t.Errorf("with the disk for itself: %v after %s, said: %t", err, time.Since(begin), said(a))
		}

		late := newVM()
		late.mode = "READ_WRITE_MANY"
		late.id = func(ctx context.Context) (string, error) { return "d1", backoff.Sleep(ctx, 5*time.Second) }
		b, stopLate := late.learning(t.Context())
		defer stopLate()
		if err := b.AwaitOneWriter(t.Context()); err != nil || said(b) {
			t.Errorf("without an answer: %v, said: %t", err, said(b))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !said(b) {
			t.Error("beside a running member nothing is said")
		}
	})
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}
