package agent

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/systemd/kubeletwatch"
)

// noUnits is a systemd that has neither unit.
type noUnits struct{ closed chan struct{} }

func (noUnits) Unit(context.Context, string) (kubeletwatch.Unit, error) {
	return kubeletwatch.Unit{Load: "not-found"}, nil
}
func (noUnits) Do(context.Context, kubeletwatch.Act, string) error { return errors.New("no such unit") }
func (noUnits) WriteStacks(context.Context, string) error          { return errors.New("no such unit") }
func (noUnits) Changed() <-chan struct{}                           { return nil }
func (noUnits) Ask(context.Context) (string, bool, error)          { return "", false, errors.New("nobody") }

// A file that cannot be read switches the watch off, and says so.
func TestAKubeletThatIsNotWatchedIsAWait(t *testing.T) {
	a, in := newVM(t).identified()
	node := noUnits{make(chan struct{})}
	a.cfg.OpenNode = func(replica.Kubelet) NodeUnits {
		return NodeUnits{Units: node, Runtime: node, Close: func() { close(node.closed) }}
	}
	if err := os.WriteFile(filepath.Join(a.cfg.RunDir, "kubelet.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.watchKubelet(t.Context(), in)()
	<-node.closed
	if all := a.tracker.All(); len(all) != 1 || all[0].Name != kubeletNotWatched ||
		!strings.Contains(all[0].Reason, "in this boot") {
		t.Errorf("it waits for %+v", all)
	}
}

// What is watched is in the status and in the metrics; `watch: false` and a machine without systemd have neither.
func TestTheWatchOfTheKubeletIsInTheStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		document string
		systemd  bool
		want     bool
	}{
		"a master":           {"", true, true},
		"switched off":       {"kubelet: {watch: false}\n", true, false},
		"no systemd runs it": {"", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVM(t)
			v.metadata.attributes[ClusterAttribute] += tc.document
			a, in := v.identified()
			node := noUnits{make(chan struct{})}
			if tc.systemd {
				a.cfg.OpenNode = func(k replica.Kubelet) NodeUnits {
					if k.Unit != "kubelet.service" || k.RuntimeSocket != "/run/containerd/containerd.sock" {
						t.Errorf("it opens %+v", k)
					}
					return NodeUnits{Units: node, Runtime: node, Clock: func() time.Duration { return time.Hour },
						Close: func() { close(node.closed) }}
				}
			}
			stop := a.watchKubelet(t.Context(), in)
			if tc.want {
				eventually(t, "the units are read", func() bool {
					s := a.kubeletStatus()
					return s != nil && len(s.Units) == 2 && s.Units[1].State == kubeletwatch.Absent
				})
			} else if s := a.kubeletStatus(); s != nil {
				t.Errorf("the status has %+v", s)
			}
			w := httptest.NewRecorder()
			a.answers().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			series := `quorate_watched_unit{state="absent",unit="kubelet.service"} 1`
			if got := strings.Contains(w.Body.String(), series); got != tc.want {
				t.Errorf("the metrics have %s: %t", series, got)
			}
			stop()
			if tc.want {
				<-node.closed
			}
		})
	}
}

// A change of the document begins the watch anew, with other settings; one that switches it off ends it and its waits.
func TestTheWatchOfTheKubeletFollowsTheDocument(t *testing.T) {
	v := newVM(t)
	a, in := v.identified()
	opened, closed := make(chan replica.Kubelet, 1), make(chan struct{}, 1)
	a.cfg.OpenNode = func(k replica.Kubelet) NodeUnits {
		opened <- k
		node := noUnits{}
		return NodeUnits{Units: node, Runtime: node, Clock: func() time.Duration { return time.Hour },
			Close: func() { closed <- struct{}{} }}
	}
	stop := a.watchKubelet(t.Context(), in)
	if k := <-opened; k.Misses != 3 {
		t.Errorf("it begins with %+v", k)
	}
	text := v.metadata.attributes[ClusterAttribute]
	a.takeNote(in.cluster, text+"\netcd: {snapshots: {interval: 2h}}\n") // of which the watch knows nothing
	a.takeNote(in.cluster, text+"\nkubelet: {misses: 5}\n")
	<-closed
	if k := <-opened; k.Misses != 5 {
		t.Errorf("it goes on with %+v", k)
	}
	eventually(t, "the units are read", func() bool { s := a.kubeletStatus(); return s != nil && len(s.Units) == 2 })
	a.kubeletWaits.Hold(replica.Wait{Name: "kubelet-hung"})
	a.takeNote(in.cluster, text+"\nkubelet: {watch: false}\n")
	<-closed
	eventually(t, "nothing is watched", func() bool { return a.kubeletStatus() == nil && len(a.tracker.All()) == 0 })
	a.takeNote(in.cluster, text)
	if k := <-opened; k.Misses != 3 {
		t.Errorf("it begins again with %+v", k)
	}
	stop()
	<-closed
}
