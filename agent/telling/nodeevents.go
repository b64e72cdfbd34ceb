package telling

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quorate/quorate/agent/kubelet"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/report"
)

// eventsNamespace is where the events of Nodes are.
const eventsNamespace = "default"

// nodeEvent is an event of this master's Node.
type nodeEvent struct {
	at              time.Time
	reason, message string
	warning         bool
}

// An event that the apiserver does not take is tried again after eventRetry, until it is eventAge old. eventsHeld is
// how many may wait.
const (
	// callTimeout bounds one call to the apiserver on this machine.
	callTimeout          = 5 * time.Second
	eventRetry, eventAge = 5 * time.Second, time.Hour
	eventsHeld           = 32
	// eventsAnHour bounds what one master tells: a cluster keeps events for an hour.
	eventsAnHour = 120
)

// NodeEvents are events of this master's Node that the apiserver has not taken yet. Those that it does not take for
// long are dropped, and so are those that are too many: the reports have them. Who tells one waits for nobody.
type NodeEvents struct {
	wanted chan struct{}

	mu   sync.Mutex
	node string // empty until it is known; before that nothing is queued
	// client opens the apiserver's.
	client func() (core.EventsGetter, error)
	queue  []nodeEvent
	// told are when the last ones were told, at most eventsAnHour of them.
	told []time.Time
}

// NewNodeEvents are those of a Node that is not known yet.
func NewNodeEvents() *NodeEvents { return &NodeEvents{wanted: make(chan struct{}, 1)} }

// Open says which Node this is, and how the apiserver is asked.
func (e *NodeEvents) Open(node string, client func() (core.EventsGetter, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.node, e.client = node, client
}

// TellReported queues what of a report's events is important. It does not block.
func (e *NodeEvents) TellReported(list []report.Event) {
	for _, happened := range list {
		if happened.Important() {
			e.add(reportedEvent(happened))
		}
	}
}

// reportedEvent is a report's event as one of a Node: its reason is the kind, as Kubernetes spells reasons.
func reportedEvent(e report.Event) nodeEvent {
	kind := string(e.Kind)
	warning := slices.Contains([]report.Kind{report.Waiting, report.Restarting, report.Silent, report.StartedAgain},
		e.Kind)
	return nodeEvent{e.At, "Master" + strings.ToUpper(kind[:1]) + kind[1:], e.Text, warning}
}

// TellUnit queues a record of the watch of the kubelet. It does not block.
func (e *NodeEvents) TellUnit(r kubelet.Record) {
	reasons := map[string]string{kubelet.Ended: "UnitEnded", "restart": "UnitRestarted", "start": "UnitStarted",
		"park": "UnitParked"}
	e.add(nodeEvent{r.At, reasons[r.What], r.Text(), true})
}

func (e *NodeEvents) add(n nodeEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.node == "" {
		return
	}
	e.told = slices.DeleteFunc(e.told, func(at time.Time) bool { return n.at.Sub(at) > time.Hour })
	if len(e.told) >= eventsAnHour {
		return
	}
	e.told = append(e.told, n.at)
	e.queue = append(e.queue, n)
	e.queue = e.queue[max(0, len(e.queue)-eventsHeld):]
	select {
	case e.wanted <- struct{}{}:
	default:
	}
}

// Run hands the events to the apiserver until ctx is done.
func (e *NodeEvents) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wanted:
		}
		for n, ok := e.next(time.Now()); ok; n, ok = e.next(time.Now()) {
			if e.post(ctx, n) == nil {
				e.done(n)
			} else if backoff.Sleep(ctx, eventRetry) != nil {
				return
			}
		}
	}
}

// next is the oldest that is still worth an event.
func (e *NodeEvents) next(now time.Time) (n nodeEvent, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) > 0 && now.Sub(e.queue[0].at) > eventAge {
		e.queue = e.queue[1:]
	}
	if len(e.queue) == 0 {
		return n, false
	}
	return e.queue[0], true
}

func (e *NodeEvents) done(n nodeEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) > 0 && e.queue[0] == n {
		e.queue = e.queue[1:]
	}
}

// post makes the event. Its name is of its time and text, so that one that is posted again is the same.
func (e *NodeEvents) post(ctx context.Context, n nodeEvent) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	e.mu.Lock()
	node, open := e.node, e.client
	e.mu.Unlock()
	client, err := open()
	if err != nil {
		return err
	}
	_, err = client.Events(eventsNamespace).Create(ctx, eventOf(n, node), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// eventOf is the event of a Node.
func eventOf(n nodeEvent, node string) *corev1.Event {
	at, kind := metav1.NewTime(n.at), corev1.EventTypeNormal
	if n.warning {
		kind = corev1.EventTypeWarning
	}
	text := fnv.New32a()
	text.Write([]byte(n.message))
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: eventsNamespace,
			Name: fmt.Sprintf("%s.%x.%x", node, n.at.UnixNano(), text.Sum32())},
		// The kubelet's own events have the name in place of the Node's uid, and kubectl finds them by it.
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: node, UID: types.UID(node)},
		Reason:         n.reason, Message: n.message, Type: kind, Count: 1,
		FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: "quorate", Host: node}, ReportingController: "quorate.dev/agent",
		ReportingInstance: node,
	}
}
