package leaders

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quorate/quorate/agent/lease"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/controlplane"
)

// Client reads and writes leases.
type Client = coordination.LeaseInterface

// leases are the control plane's own. They are read and written through the apiserver of this replica.
type leases struct {
	client Client
	// as returns the client of one who shows that leaf.
	as func(certs.Leaf) (Client, error)
}

// list reads the leases of the components; the apiservers' own identity leases are left out. It is what the apiserver
// knows already (resourceVersion 0), which may be old: who acts on it reads again.
func (l *leases) list(ctx context.Context) (map[string]lease.Seen, error) {
	all, err := l.client.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	out := map[string]lease.Seen{}
	for _, item := range all.Items {
		if !strings.HasPrefix(item.Name, "apiserver-") {
			out[item.Name] = seen(item.Spec)
		}
	}
	return out, nil
}

func seen(spec coordinationv1.LeaseSpec) (s lease.Seen) {
	if spec.HolderIdentity != nil {
		s.Holder = *spec.HolderIdentity
	}
	if spec.RenewTime != nil {
		s.Renewed = spec.RenewTime.Time
	}
	return s
}

// still says whether a lease is as it was observed.
func (l *leases) still(ctx context.Context, name string, observed lease.Seen) bool {
	found, err := l.client.Get(ctx, name, metav1.GetOptions{})
	return err == nil && seen(found.Spec).Is(observed)
}

// release frees a lease that a process of this machine has left behind, if lease.MayRelease says so of what judge makes
// of it; why says why not. A lease that changes between the read and the write is left alone.
func (l *leases) release(ctx context.Context, name string, judge func(lease.Seen) (bool, string)) (released bool,
	why string, err error) {
	found, err := l.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, "there is none", nil
	}
	if err != nil {
		return false, "", fmt.Errorf("release lease %s: %w", name, err)
	}
	if yes, why := judge(seen(found.Spec)); !yes {
		return false, why, nil
	}
	nobody, second := "", int32(1)
	found.Spec.HolderIdentity, found.Spec.LeaseDurationSeconds = &nobody, &second
	_, err = l.client.Update(ctx, found, metav1.UpdateOptions{FieldManager: "quorate"})
	if apierrors.IsConflict(err) {
		return false, "somebody was quicker", nil
	}
	if err != nil {
		return false, "", fmt.Errorf("release lease %s: %w", name, err)
	}
	return true, "", nil
}

// dryRun writes a lease without effect, as the component would: with its certificate, so what admission and
// authorization refuse to the component they refuse here. A lease that is not as observed any more is not tried.
func (l *leases) dryRun(ctx context.Context, of controlplane.Lease, observed lease.Seen) (lease.DryRun, string) {
	client, err := l.as(of.Leaf)
	if err != nil {
		return lease.Refused, err.Error()
	}
	found, err := client.Get(ctx, of.Name, metav1.GetOptions{})
	if err != nil {
		return lease.Refused, err.Error()
	}
	if !seen(found.Spec).Is(observed) {
		return lease.NotTried, ""
	}
	renewed := metav1.NewMicroTime(time.Now())
	found.Spec.RenewTime = &renewed
	_, err = client.Update(ctx, found, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsConflict(err):
		return lease.NotTried, ""
	case err != nil:
		return lease.Refused, err.Error()
	}
	return lease.Accepted, ""
}
