package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"

	"github.com/quorate/quorate/internal/backoff"
)

// What a kubelet and a kube-proxy have by default.
const (
	leaseDuration  = 40 * time.Second
	renewInterval  = leaseDuration / 4
	statusInterval = 5 * time.Minute
	kubeletQPS     = 50
	proxyQPS       = 5
	registerPause  = 100 * time.Millisecond // doubles up to
	registerLimit  = 7 * time.Second
	podStart       = time.Second // what a pod takes to run, once it was seen
)

// WatchesEach is how many watches one node holds.
const WatchesEach = 6

// One is one node that is imitated.
type One struct {
	Name    string
	address string
	cluster *Cluster
	watches *Watches
	kubelet *Connection
	proxy   *Connection
	synced  []cache.Controller
	began   atomic.Pointer[time.Time] // once its watches begin
	started map[types.UID]bool        // pods; the pods' informer calls one handler at a time
	running sync.WaitGroup
}

// New prepares the node of a number, below 65,536.
func New(c *Cluster, w *Watches, n int) (*One, error) {
	o := &One{Name: fmt.Sprintf("node-%05d", n), address: fmt.Sprintf("10.99.%d.%d", n/256, n%256), cluster: c,
		watches: w, started: map[types.UID]bool{}}
	var err error
	if o.kubelet, err = c.Connect(o.Name, "system:node:"+o.Name, "system:nodes", kubeletQPS); err != nil {
		return nil, err
	}
	o.proxy, err = c.Connect(o.Name+"/proxy", "system:kube-proxy", "system:node-proxier", proxyQPS)
	return o, err
}

// Connections are the names of the node's two in the meter.
func (o *One) Connections() []string { return []string{o.Name, o.Name + "/proxy"} }

// Run is the node's life, until the context ends.
func (o *One) Run(ctx context.Context) {
	defer o.kubelet.Close()
	defer o.proxy.Close()
	o.watch(ctx)
	now := time.Now()
	o.began.Store(&now)
	if o.register(ctx) != nil {
		o.running.Wait()
		return
	}
	renew := lease.NewController(clock.RealClock{}, o.kubelet.Short, o.Name, int32(leaseDuration.Seconds()),
		o.kubelet.dialer.CloseAll, renewInterval, o.Name, corev1.NamespaceNodeLease, nil)
	o.running.Go(func() { renew.Run(ctx) })
	o.running.Go(func() { o.heartbeats(ctx) })
	o.running.Wait()
}

// Began is when the node began; zero: it did not yet.
func (o *One) Began() time.Time {
	if at := o.began.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Synced says whether each of the node's watches has been up once.
func (o *One) Synced() bool {
	if o.Began().IsZero() {
		return false
	}
	for _, c := range o.synced {
		if !c.HasSynced() {
			return false
		}
	}
	return true
}

// watch begins the six watches: the kubelet's pods, node, services and CSI drivers, and kube-proxy's services and
// endpoint slices.
func (o *One) watch(ctx context.Context) {
	k, p, name, proxy := o.kubelet.Long, o.proxy.Long, o.Name, o.Name+"/proxy"
	pods, node := k.CoreV1().Pods(""), k.CoreV1().Nodes()
	services, theirs := k.CoreV1().Services(""), p.CoreV1().Services("")
	drivers, endpoints := k.StorageV1().CSIDrivers(), p.DiscoveryV1().EndpointSlices("")
	w, m := o.watches, o.cluster.Meter
	run := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { o.pod(ctx, obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { o.pod(ctx, obj.(*corev1.Pod)) },
	}
	o.inform(ctx, &corev1.Pod{}, counted(w, m, name, "spec.nodeName="+name, pods.List, pods.Watch), run)
	none := cache.ResourceEventHandlerFuncs{}
	o.inform(ctx, &corev1.Node{}, counted(w, m, name, "metadata.name="+name, node.List, node.Watch), none)
	o.inform(ctx, &corev1.Service{}, counted(w, m, name, "", services.List, services.Watch), none)
	o.inform(ctx, &storagev1.CSIDriver{}, counted(w, m, name, "", drivers.List, drivers.Watch), none)
	o.inform(ctx, &corev1.Service{}, counted(w, m, proxy, "", theirs.List, theirs.Watch), none)
	o.inform(ctx, &discoveryv1.EndpointSlice{}, counted(w, m, proxy, "", endpoints.List, endpoints.Watch), none)
}

func (o *One) inform(ctx context.Context, of runtime.Object, source cache.ListerWatcher, h cache.ResourceEventHandler) {
	_, c := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source, ObjectType: of, Handler: h})
	o.synced = append(o.synced, c)
	o.running.Go(func() { c.RunWithContext(ctx) })
}

// register makes the Node object, tried again as the kubelet does.
func (o *One) register(ctx context.Context) error {
	for pause := registerPause; ; pause = min(2*pause, registerLimit) {
		_, err := o.kubelet.Long.CoreV1().Nodes().Create(ctx, o.object(), metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// heartbeats posts the node's status each five minutes. The first comes at some moment of these.
func (o *One) heartbeats(ctx context.Context) {
	for pause := rand.N(statusInterval); backoff.Sleep(ctx, pause) == nil; pause = statusInterval {
		o.patch(ctx, func(ctx context.Context, patch []byte) error {
			_, err := o.kubelet.Short.CoreV1().Nodes().Patch(ctx, o.Name, types.StrategicMergePatchType, patch,
				metav1.PatchOptions{}, "status")
			return err
		}, map[string]any{"conditions": conditions()})
	}
}

// patch sends a status until it is taken, or five times, as the kubelet does.
func (o *One) patch(ctx context.Context, send func(context.Context, []byte) error, status any) {
	patch, err := json.Marshal(map[string]any{"status": status})
	for range 5 {
		if err != nil || ctx.Err() != nil || send(ctx, patch) == nil {
			return
		}
	}
}

// pod runs a pod that the scheduler gave to the node, and ends one that is being deleted.
func (o *One) pod(ctx context.Context, pod *corev1.Pod) {
	pods := o.kubelet.Long.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		o.running.Go(func() {
			pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		})
	case pod.Status.Phase == corev1.PodPending && !o.started[pod.UID]:
		o.started[pod.UID] = true
		o.running.Go(func() {
			if backoff.Sleep(ctx, podStart) != nil {
				return
			}
			now := metav1.Now()
			o.patch(ctx, func(ctx context.Context, patch []byte) error {
				_, err := pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
					"status")
				return err
			}, corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, HostIP: o.address, PodIP: o.address,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
					LastTransitionTime: now}}})
		})
	}
}

func conditions() (out []corev1.NodeCondition) {
	now := metav1.Now()
	for kind, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		out = append(out, corev1.NodeCondition{Type: kind, Status: status, Reason: "Imitated", LastHeartbeatTime: now,
			LastTransitionTime: now})
	}
	return out
}

func (o *One) object() *corev1.Node {
	has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: map[string]string{corev1.LabelHostname: o.Name,
			corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has, Conditions: conditions(),
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: o.address},
				{Type: corev1.NodeHostName, Address: o.Name}},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OperatingSystem: "linux",
				Architecture: "amd64"}},
	}
}
