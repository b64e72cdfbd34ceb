package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/backoff"
)

const (
	// roleNotGranted is the wait for what this replica may do in the cluster.
	roleNotGranted = "role-not-granted"
	roleNext       = "It is tried again by itself, at most a minute later. What runs goes on; `kubectl logs` " +
		"and `exec` may be refused."
)

// keepAccess sees that the agent's role and the kubelets' binding are there, once the apiserver is ready, and opens the
// leases. It tries until that is done: without them leases are not released, and kubelets refuse the apiserver.
func (a *Agent) keepAccess(ctx context.Context, in joined) {
	if _, err := a.awaitAPIServer(ctx, in); err != nil {
		return // the replica stops
	}
	in.makeBundle = false // there is one by now
	retry := backoff.Backoff{First: firstAccessRetry, Most: lastAccessRetry}
	for {
		err := a.openAccess(ctx, in)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			a.waits.Release(roleNotGranted)
			return
		}
		a.waits.HoldFor(roleNotGranted, err, roleNext)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry.Next()):
		}
	}
}

func (a *Agent) openAccess(ctx context.Context, in joined) error {
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	if err := a.grantRoles(ctx, in); err != nil {
		return err
	}
	return a.openLeases(in)
}

// grantRoles grants what is not granted. Only that needs the bundle: it is read where it is needed. Nobody can hold the
// Lease quorate before that, so at the first boots several replicas may grant the same; later its holder alone does.
func (a *Agent) grantRoles(ctx context.Context, in joined) error {
	port := in.cluster.Endpoint.Port
	granted, err := rolesGranted(ctx, a.files, port)
	if granted || err != nil {
		return err
	}
	cert, err := a.bootstrapClient(ctx, in)
	if err != nil {
		return fmt.Errorf("grant the agent its role: %w", err)
	}
	return grantRoles(ctx, a.files, port, cert)
}

// bootstrapClient is an administrator's certificate, for a minute and in memory.
func (a *Agent) bootstrapClient(ctx context.Context, in joined) (tls.Certificate, error) {
	bundle := in.bundle
	if bundle == nil {
		found, err := a.bundleOnce(ctx, in.recorded, in.report.Generation)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("read the bundle: %w", err)
		}
		bundle = found.bundle
	}
	return certs.BootstrapClient(bundle, time.Now())
}
