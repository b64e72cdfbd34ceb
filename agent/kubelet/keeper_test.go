package kubelet

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// keeper is a keeper of the world's units, and what is received when they are closed.
func (w *world) keeper() (*Keeper, <-chan struct{}) {
	closed := make(chan struct{}, 1)
	own := &waits.Phased{Source: w.tracker.Source("agent", "phase", 0)}
	return NewKeeper(Config{Log: slog.New(slog.DiscardHandler), APIServer: func() bool { return true },
		StatePath:    filepath.Join(w.dir, "kubelet.json"),
		KubeletWaits: w.kubelet, RuntimeWaits: w.runtime, Tell: func(Record) {}}, own,
		func(replica.Kubelet) Node {
			return Node{Units: w, Runtime: runtimeOf{w}, Clock: w.clock, Close: func() { closed <- struct{}{} }}
		}), closed
}

// watching is a document's part that has the units watched.
func watching(yes bool) replica.Kubelet {
	return replica.Kubelet{Watch: &yes, Unit: kubeletUnit, RuntimeUnit: runtimeUnit, Misses: 3,
		AnswerWithin: replica.Duration(10 * time.Second), StartWithin: replica.Duration(time.Minute)}
}

// A file that cannot be read switches the watch off, and says so.
func TestAKubeletThatIsNotWatchedIsAWait(t *testing.T) {
	w := newWorld(t)
	k, closed := w.keeper()
	if err := os.WriteFile(filepath.Join(w.dir, "kubelet.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.Keep(t.Context(), func() replica.Kubelet { return watching(true) }, nil)()
	<-closed
	if all := w.tracker.All(); len(all) != 1 || all[0].Name != notWatched ||
		!strings.Contains(all[0].Reason, "in this boot") {
		t.Errorf("it waits for %+v", all)
	}
}

// A watch that is switched off ends, and so does what its units wait for.
func TestAWatchThatIsSwitchedOffLeavesNoWaits(t *testing.T) {
	w := newWorld(t)
	k, closed := w.keeper()
	wanted, changed := make(chan replica.Kubelet, 1), make(chan struct{})
	wanted <- watching(true)
	stop := k.Keep(t.Context(), func() replica.Kubelet { return <-wanted }, changed)
	if k.Status() == nil {
		t.Error("nothing is watched")
	}
	w.kubelet.Hold(replica.Wait{Name: "kubelet-hung"})
	wanted <- watching(false)
	changed <- struct{}{}
	<-closed
	end := time.Now().Add(5 * time.Second)
	for k.Status() != nil || len(w.tracker.All()) != 0 {
		if time.Now().After(end) {
			t.Fatalf("status %+v, waits %+v", k.Status(), w.tracker.All())
		}
		time.Sleep(time.Millisecond)
	}
	stop()
}
