package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quorate/quorate/agent/leaders"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/waits"
)

const (
	// roleNotGranted is the wait for what this replica may do in the cluster.
	roleNotGranted = "role-not-granted"
	roleNext       = "It is tried again by itself, at most a minute later. What runs goes on; `kubectl logs` " +
		"and `exec` may be refused."
)

// clusterAccess is how the agent reaches its own apiserver, and sees to what it may do there.
type clusterAccess struct {
	log   *slog.Logger
	waits *waits.Phased
	files certs.Files
	port  int
	// administrator makes an administrator's certificate, for a minute and in memory. It reads the bundle, if need be.
	administrator func(ctx context.Context) (tls.Certificate, error)
}

// keep sees that the agent's role and the kubelets' binding are there, and opens the leases. It tries until that is
// done: without them leases are not released, and kubelets refuse the apiserver.
func (c clusterAccess) keep(ctx context.Context, l *leaders.Leaders) {
	retry := backoff.Backoff{First: firstAccessRetry, Most: lastAccessRetry}
	for {
		err := c.open(ctx, l)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			c.waits.Release(roleNotGranted)
			return
		}
		c.waits.HoldFor(roleNotGranted, err, roleNext)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry.Next()):
		}
	}
}

func (c clusterAccess) open(ctx context.Context, l *leaders.Leaders) error {
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	if err := c.grantRoles(ctx); err != nil {
		return err
	}
	return l.Open(c.leases)
}

// leases is the client of one who shows a leaf.
func (c clusterAccess) leases(leaf certs.Leaf) (leaders.Client, error) {
	client, err := coordination.NewForConfig(localAPIAs(leaf, c.files, c.port))
	if err != nil {
		return nil, fmt.Errorf("open leases: %w", err)
	}
	return client.Leases(leaders.Namespace), nil
}

// grantRoles grants what is not granted. Only that needs the bundle: it is read where it is needed. Nobody can hold the
// Lease quorate before that, so at the first boots several replicas may grant the same; later its holder alone does.
func (c clusterAccess) grantRoles(ctx context.Context) error {
	granted, err := rolesGranted(ctx, c.files, c.port)
	if granted || err != nil {
		return err
	}
	cert, err := c.administrator(ctx)
	if err != nil {
		return fmt.Errorf("grant the agent its role: %w", err)
	}
	return grantRoles(ctx, c.files, c.port, cert)
}
