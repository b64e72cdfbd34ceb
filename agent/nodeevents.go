package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/replica"
)

// eventsNamespace is where the events of Nodes are.
const eventsNamespace = "default"

// nodeEvents are events of this master's Node that the apiserver has not taken yet. Those that it does not take for
// long are dropped: journal and status have them.
type nodeEvents struct {
	self replica.Identity
	// client opens the apiserver's.
	client func() (core.EventsGetter, error)

	wanted chan struct{}
	mu     sync.Mutex
	queue  []kubelet.Record
}

func newNodeEvents(files certs.Files, self replica.Identity, port int) *nodeEvents {
	client := func() (core.EventsGetter, error) { return core.NewForConfig(localAPI(files, port)) }
	return &nodeEvents{self: self, client: client, wanted: make(chan struct{}, 1)}
}

// tell queues a record. It does not block.
func (e *nodeEvents) tell(r kubelet.Record) {
	e.mu.Lock()
	e.queue = append(e.queue, r)
	e.queue = e.queue[max(0, len(e.queue)-eventsHeld):]
	e.mu.Unlock()
	select {
	case e.wanted <- struct{}{}:
	default:
	}
}

// run hands the records to the apiserver until ctx is done.
func (e *nodeEvents) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wanted:
		}
		for r, ok := e.next(time.Now()); ok; r, ok = e.next(time.Now()) {
			if e.post(ctx, r) == nil {
				e.done(r)
			} else if backoff.Sleep(ctx, eventRetry) != nil {
				return
			}
		}
	}
}

// next is the oldest record that is still worth an event.
func (e *nodeEvents) next(now time.Time) (r kubelet.Record, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) > 0 && now.Sub(e.queue[0].At) > eventAge {
		e.queue = e.queue[1:]
	}
	if len(e.queue) == 0 {
		return r, false
	}
	return e.queue[0], true
}

func (e *nodeEvents) done(r kubelet.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) > 0 && e.queue[0] == r {
		e.queue = e.queue[1:]
	}
}

// post makes the event of a record. Its name is the record's, so that one that is posted again is the same.
func (e *nodeEvents) post(ctx context.Context, r kubelet.Record) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client, err := e.client()
	if err != nil {
		return err
	}
	_, err = client.Events(eventsNamespace).Create(ctx, eventOf(r, e.self.Name), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// eventOf is a record as an event of a Node.
func eventOf(r kubelet.Record, node string) *corev1.Event {
	reasons := map[string]string{kubelet.Ended: "UnitEnded", "restart": "UnitRestarted", "start": "UnitStarted",
		"park": "UnitParked"}
	at := metav1.NewTime(r.At)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: eventsNamespace, Name: fmt.Sprintf("%s.%x", node, r.At.UnixNano())},
		// The kubelet's own events have the name in place of the Node's uid, and kubectl finds them by it.
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: node, UID: types.UID(node)},
		Reason:         reasons[r.What], Message: r.Text(), Type: corev1.EventTypeWarning, Count: 1,
		FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: "quorate", Host: node}, ReportingController: "quorate.dev/agent",
		ReportingInstance: node,
	}
}
