package leaders

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ownLease is the Lease of the agents' own election, as election.Lease.
type ownLease struct {
	resourcelock.LeaseLock
	seen *seenLease
}

func newOwnLease(api coordination.LeasesGetter, identity string) *ownLease {
	seen := &seenLease{LeaseInterface: api.Leases(Namespace)}
	return &ownLease{seen: seen, LeaseLock: resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: Namespace, Name: Own},
		Client:     seen,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
}

// Glance is of election.Lease.
func (l *ownLease) Glance(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.seen.glances = true
	defer func() { l.seen.glances = false }()
	return l.Get(ctx)
}

// seenLease is a client of one Lease, which remembers it. LeaseLock keeps what it read to itself, so what Glance says
// has to come to it by Get.
type seenLease struct {
	coordination.LeaseInterface
	last    *coordinationv1.Lease // nil: nothing was read or written, or there was none
	glances bool
}

// Leases is of coordination.LeasesGetter.
func (s *seenLease) Leases(string) coordination.LeaseInterface { return s }

// Get reads the Lease, or, in a glance, what the apiserver has in memory unless that is older than what is known.
func (s *seenLease) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	if !s.glances {
		return s.note(s.LeaseInterface.Get(ctx, name, options))
	}
	options.ResourceVersion = "0"
	found, err := s.LeaseInterface.Get(ctx, name, options)
	if err == nil && s.last != nil {
		// What cannot be compared is refused when it is written, and read then.
		if order, err := resourceversion.CompareResourceVersion(found.ResourceVersion,
			s.last.ResourceVersion); err == nil && order < 0 {
			return s.last.DeepCopy(), nil
		}
	}
	return s.note(found, err)
}

// Create makes the Lease.
func (s *seenLease) Create(ctx context.Context, l *coordinationv1.Lease, options metav1.CreateOptions) (
	*coordinationv1.Lease, error) {
	return s.note(s.LeaseInterface.Create(ctx, l, options))
}

// Update writes the Lease, if it is still as it was read.
func (s *seenLease) Update(ctx context.Context, l *coordinationv1.Lease, options metav1.UpdateOptions) (
	*coordinationv1.Lease, error) {
	return s.note(s.LeaseInterface.Update(ctx, l, options))
}

// note remembers an answer. LeaseLock changes the Lease that it gets.
func (s *seenLease) note(l *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err == nil {
		s.last = l.DeepCopy()
	}
	return l, err
}
