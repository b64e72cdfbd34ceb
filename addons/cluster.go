package addons

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/quorate/quorate/addons/plan"
)

// requestTimeout bounds one request that does not write. A webhook may take 30 s, and a dry run asks several.
const requestTimeout = 65 * time.Second

// cluster reads and writes the cluster as the manager sees it. It holds no policy.
type cluster struct {
	client client.Client
	// writer has the deadline of writes. The apiserver is told of it, and gives up what takes longer.
	writer client.Client
	apply  *ssa.ResourceManager
}

func openCluster(kubeconfig string, write time.Duration) (*cluster, error) {
	runtimelog.SetLogger(logr.Discard()) // else it complains that nobody has said where to log
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.Timeout, config.UserAgent = requestTimeout, "quorate-addons"
	config.QPS = -1 // few requests run at once, and the apiserver is fair
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("open the cluster: %w", err)
	}
	config.Timeout = write
	writer, err := client.New(config, client.Options{Mapper: c.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("open the cluster: %w", err)
	}
	owner := ssa.Owner{Field: plan.FieldOwner, Group: "addons.quorate.dev"}
	return &cluster{client: c, writer: writer, apply: ssa.NewResourceManager(c, nil, owner)}, nil
}

// inventory reads the inventory; a nil ConfigMap: there is none.
func (c *cluster) inventory(ctx context.Context) (*corev1.ConfigMap, *plan.Inventory, error) {
	var there corev1.ConfigMap
	err := c.client.Get(ctx, client.ObjectKey{Namespace: plan.InventoryNamespace, Name: plan.InventoryName}, &there)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the inventory: %w", err)
	}
	inv, err := plan.ParseInventory(there.Annotations, there.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("read the inventory, ConfigMap %s/%s: %w", plan.InventoryNamespace,
			plan.InventoryName, err)
	}
	return &there, &inv, nil
}

// writeInventory writes it in place of the one that was read; it fails where that has changed meanwhile.
func (c *cluster) writeInventory(ctx context.Context, before *corev1.ConfigMap,
	inv plan.Inventory) (*corev1.ConfigMap, error) {
	annotations, data := inv.Encode()
	if before == nil {
		next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: plan.InventoryNamespace,
			Name: plan.InventoryName, Annotations: annotations}, Data: data}
		if err := c.writer.Create(ctx, next, client.FieldOwner(plan.FieldOwner)); err != nil {
			return nil, fmt.Errorf("create the inventory: %w", err)
		}
		return next, nil
	}
	next := before.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	for key, value := range annotations {
		next.Annotations[key] = value
	}
	next.Data = data
	if err := c.writer.Update(ctx, next, client.FieldOwner(plan.FieldOwner)); err != nil {
		return nil, fmt.Errorf("write the inventory: %w", err)
	}
	return next, nil
}

// scope checks that a manifest has a namespace where its kind wants one, and none where it does not.
func (c *cluster) scope(id plan.ID) error {
	gvk := schema.FromAPIVersionAndKind(id.APIVersion, id.Kind)
	mapping, err := c.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the cluster has no %s of %s: its CustomResourceDefinition may come later", id.Kind,
			id.APIVersion)
	}
	if err != nil {
		return fmt.Errorf("ask for kind %s of %s: %w", id.Kind, id.APIVersion, err)
	}
	switch namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; {
	case namespaced && id.Namespace == "":
		return errors.New("metadata.namespace: found none; allowed: a namespace, since the kind has one")
	case !namespaced && id.Namespace != "":
		return fmt.Errorf("metadata.namespace: found %q; allowed: none, since the kind has none", id.Namespace)
	}
	return nil
}

// pageSize and mostPages bound a list: whoever may make objects can give them the label, by the thousand. What a list
// does not reach is read by its name.
const pageSize, mostPages = 500, 20

// marked lists the objects of a kind that bear the manager's mark, and are wanted.
func (c *cluster) marked(ctx context.Context, gvk schema.GroupVersionKind, wanted map[plan.Key]bool) (
	map[plan.Key]*unstructured.Unstructured, error) {
	out := map[plan.Key]*unstructured.Unstructured{}
	for page, next := 0, ""; page < mostPages && (page == 0 || next != ""); page++ {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.client.List(ctx, list, client.HasLabels{plan.OriginLabel}, client.Limit(pageSize),
			client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			u := &list.Items[i]
			key := plan.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
			if wanted[key] {
				out[key] = u
			}
		}
		next = list.GetContinue()
	}
	return out, nil
}

// errUnserved: the cluster does not serve an object's kind, so nothing is known of the object.
var errUnserved = errors.New("the cluster does not serve its kind")

// unserved says that an error is about a kind and not about an object: the apiserver answers 404 to both.
func unserved(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) &&
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// get reads one object, or nil where it is not there.
func (c *cluster) get(ctx context.Context, id plan.ID) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(id.APIVersion, id.Kind))
	err := c.client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, u)
	switch {
	case unserved(err):
		return nil, fmt.Errorf("%w: %w", errUnserved, err)
	case apierrors.IsNotFound(err):
		return nil, nil
	}
	return u, err
}

// delete deletes exactly the object that was read: one that has changed since is another.
func (c *cluster) delete(ctx context.Context, u *unstructured.Unstructured) error {
	uid, version := u.GetUID(), u.GetResourceVersion()
	err := c.writer.Delete(ctx, u, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &uid, ResourceVersion: &version})
	return client.IgnoreNotFound(err)
}

// tell creates an Event about an object. Where the object has no namespace, or its namespace does not exist yet, the
// Event is on the inventory.
func (c *cluster) tell(ctx context.Context, replica string, about plan.ID, uid types.UID, kind, reason,
	message string) error {
	now := time.Now()
	event := func(on plan.ID, uid types.UID, message string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: on.Namespace, Name: fmt.Sprintf("%.200s.%x", on.Name,
				now.UnixNano())},
			InvolvedObject: corev1.ObjectReference{APIVersion: on.APIVersion, Kind: on.Kind, Namespace: on.Namespace,
				Name: on.Name, UID: uid},
			Type: kind, Reason: reason, Message: fmt.Sprintf("%.1000s", message), Count: 1,
			FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
			Source:              corev1.EventSource{Component: plan.FieldOwner, Host: replica},
			ReportingController: plan.FieldOwner, ReportingInstance: replica,
		}
	}
	if about.Namespace != "" {
		if err := c.writer.Create(ctx, event(about, uid, message)); err == nil || !apierrors.IsNotFound(err) {
			return err
		}
	}
	inventory := plan.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: plan.InventoryNamespace,
		Name: plan.InventoryName}
	return c.writer.Create(ctx, event(inventory, "", about.String()+": "+message))
}
