package agent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quorate/quorate/etcdmember"
	"github.com/quorate/quorate/internal/backoff"
)

// doDuties does what one replica at a time does for the cluster, while it holds the Lease: it sees that the roles are
// granted, and deletes the Nodes of replicas that have left. What fails is tried again at the next time. Each duty is
// safe if two do it.
func (c clusterAccess) doDuties(ctx context.Context, departed func(context.Context) []etcdmember.Departed) {
	defer c.waits.Release(roleNotGranted) // the next holder of the Lease has it then
	for {
		err := c.grantRoles(ctx)
		if err == nil {
			c.waits.Release(roleNotGranted)
		} else if ctx.Err() == nil {
			c.waits.HoldFor(roleNotGranted, err, roleNext)
		}
		if err := c.deleteDeparted(ctx, departed(ctx)); err != nil && ctx.Err() == nil {
			c.log.Warn("delete the Nodes of replicas that have left", "err", err.Error())
		}
		if backoff.Sleep(ctx, dutiesPeriod) != nil {
			return
		}
	}
}

// deleteDeparted deletes the Nodes of replicas that left by order. Their leases go with them: Kubernetes collects what
// a Node owns.
func (c clusterAccess) deleteDeparted(ctx context.Context, gone []etcdmember.Departed) error {
	if len(gone) == 0 {
		return nil
	}
	client, err := core.NewForConfig(localAPI(c.files, c.port))
	if err != nil {
		return err
	}
	for _, d := range gone {
		node, err := client.Nodes().Get(ctx, d.Place.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the Node %s: %w", d.Place.Name, err)
		}
		if !isDeparted(node, d) {
			continue
		}
		err = client.Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			UID: &node.UID, ResourceVersion: &node.ResourceVersion}})
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("delete the Node %s: %w", node.Name, err)
		default:
			c.log.Info("deleted the Node of a replica that has left", "node", node.Name, "replica",
				d.Place.String())
		}
	}
	return nil
}

// isDeparted: the Node is of one of the boots that had the place, and its kubelet has not been heard of for long. A
// Node of the same name may be another VM's: a replica in another zone, a worker, or one that took the place again.
func isDeparted(n *corev1.Node, d etcdmember.Departed) bool {
	if !d.Boots[n.Status.NodeInfo.BootID] {
		return false
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown && time.Since(c.LastTransitionTime.Time) >= departedPatience
		}
	}
	return false
}
