package agent

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/agent/kubelet"
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
			node := noUnits{make(chan struct{})}
			if tc.systemd {
				v.openNode = func(k replica.Kubelet) kubelet.Node {
					if k.Unit != "kubelet.service" || k.RuntimeSocket != "/run/containerd/containerd.sock" {
						t.Errorf("it opens %+v", k)
					}
					return kubelet.Node{Units: node, Runtime: node, Clock: func() time.Duration { return time.Hour },
						Close: func() { close(node.closed) }}
				}
			}
			a, _ := v.identified()
			stop := a.kubelet.Keep(t.Context(), a.document.kubelet, a.document.changed)
			if tc.want {
				eventually(t, "the units are read", func() bool {
					s := a.kubelet.Status()
					return s != nil && len(s.Units) == 2 && s.Units[1].State == kubeletwatch.Absent
				})
			} else if s := a.kubelet.Status(); s != nil {
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
	opened, closed := make(chan replica.Kubelet, 1), make(chan struct{}, 1)
	v.openNode = func(k replica.Kubelet) kubelet.Node {
		opened <- k
		node := noUnits{}
		return kubelet.Node{Units: node, Runtime: node, Clock: func() time.Duration { return time.Hour },
			Close: func() { closed <- struct{}{} }}
	}
	a, _ := v.identified()
	stop := a.kubelet.Keep(t.Context(), a.document.kubelet, a.document.changed)
	if k := <-opened; k.Misses != 3 {
		t.Errorf("it begins with %+v", k)
	}
	text := v.metadata.attributes[ClusterAttribute]
	a.document.take(text + "\netcd: {snapshots: {interval: 2h}}\n") // of which the watch knows nothing
	a.document.take(text + "\nkubelet: {misses: 5}\n")
	<-closed
	if k := <-opened; k.Misses != 5 {
		t.Errorf("it goes on with %+v", k)
	}
	eventually(t, "the units are read", func() bool { s := a.kubelet.Status(); return s != nil && len(s.Units) == 2 })
	a.document.take(text + "\nkubelet: {watch: false}\n")
	<-closed
	eventually(t, "nothing is watched", func() bool { return a.kubelet.Status() == nil && len(a.tracker.All()) == 0 })
	a.document.take(text)
	if k := <-opened; k.Misses != 3 {
		t.Errorf("it begins again with %+v", k)
	}
	stop()
	<-closed
}
