package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// nodeOf is a Node whose kubelet was last heard of that long ago.
func nodeOf(name, boot string, status corev1.ConditionStatus, ago time.Duration) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u1", ResourceVersion: "7"},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: boot},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status,
				LastTransitionTime: metav1.NewTime(time.Now().Add(-ago))}}}}
}

func TestWhichNodeIsOfAReplicaThatLeft(t *testing.T) {
	left := etcdmember.Departed{Place: replica.Place{Zone: "z", Name: "a"}, Boots: map[string]bool{"boot1": true}}
	for name, c := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"it is":                       {nodeOf("a", "boot1", corev1.ConditionUnknown, time.Hour), true},
		"another VM of this name":     {nodeOf("a", "boot9", corev1.ConditionUnknown, time.Hour), false},
		"its kubelet runs":            {nodeOf("a", "boot1", corev1.ConditionTrue, time.Hour), false},
		"its kubelet says not ready":  {nodeOf("a", "boot1", corev1.ConditionFalse, time.Hour), false},
		"silent since a moment":       {nodeOf("a", "boot1", corev1.ConditionUnknown, departedPatience/2), false},
		"no kubelet ever reported":    {&corev1.Node{}, false},
		"a boot that nobody knows of": {nodeOf("a", "", corev1.ConditionUnknown, time.Hour), false},
	} {
		if got := isDeparted(c.node, left); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What could not be granted under the Lease is no wait of a replica that has lost it.
func TestTheDutysWaitEndsWithTheLease(t *testing.T) {
	_, a, in := renewing(t)
	api := serving(t, a, &in)
	newMember(t, a, in.identified, threeOf(nil))
	in.membership = a.membership
	api.fails = 1 << 20
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.access(joined{in}).doDuties(ctx, in.membership.Departed) }()
	eventually(t, "the failure is said", func() bool { return len(a.tracker.All()) > 0 })
	cancel()
	<-done
	if all := a.tracker.All(); len(all) > 0 {
		t.Errorf("it waits for %+v", all)
	}
}

// The holder of the agents' Lease deletes the Node of a replica that left, and that very one.
func TestTheNodeOfAReplicaThatLeftIsDeleted(t *testing.T) {
	v, a, in := renewing(t)
	api := serving(t, a, &in)
	gone := replica.Place{Zone: "us-central1-b", Name: "master-z"}
	v.record.view.Replicas = map[replica.Place][]record.Incarnation{gone: {{Place: gone, Number: 1, BootID: "boot1"}}}
	v.record.view.Orders = []record.Order{{Number: 1, Kind: record.OrderLeave, Place: &gone,
		Done: &record.Done{Time: time.Now()}}}
	newMember(t, a, in.identified, threeOf(nil))
	in.membership = a.membership
	if _, err := in.membership.Claim(t.Context()); err != nil { // reads the record
		t.Fatal(err)
	}
	const path = "/api/v1/nodes/master-z"
	api.objects[rolePath] = []byte("{}") // the agent is let in
	node, err := json.Marshal(nodeOf("master-z", "boot1", corev1.ConditionUnknown, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	api.objects[path] = node
	deletes := func() error {
		return a.access(joined{in}).deleteDeparted(t.Context(), in.membership.Departed(t.Context()))
	}
	if err := deletes(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(api.requests, "DELETE "+path) || api.count(http.MethodDelete) != 1 {
		t.Errorf("%q", api.requests)
	}
	if !bytes.Contains(api.deleted, []byte("u1")) || !bytes.Contains(api.deleted, []byte("7")) { // as protobuf
		t.Errorf("another Node of that name might be deleted: %q", api.deleted)
	}
	v.record.view.Orders = nil
	if _, err := in.membership.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := deletes(); err != nil || api.count(http.MethodDelete) != 1 {
		t.Errorf("%v: without an order: %q", err, api.requests)
	}
}
