package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbac "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/waits"
)

// addonsName is the user that the add-on manager is in the cluster, its role and its binding.
const addonsName = "quorate:addons"

// addonsRoleNotGranted is the wait for what the add-on manager may do.
const (
	addonsRoleNotGranted = "addons-role-not-granted"
	addonsRoleNext       = "It is tried again by itself, at most half a minute later. Add-ons that it does not " +
		"need go on."
)

// addonManager is what the agent does about the add-on manager, which runs as a component: it tells what that says of
// itself, and grants it what its folder needs. Several may ask it for the status.
type addonManager struct {
	log   *slog.Logger
	waits *waits.Phased
	// rules says what the manager must be allowed to do for a folder.
	rules func(ctx context.Context, folder string) ([]plan.Rule, error)

	mu     sync.Mutex
	status *plan.Status // nil while it does not answer; never written into again
}

// keep does so for a folder until ctx is done. The manager goes on whatever happens here.
func (m *addonManager) keep(ctx context.Context, access clusterAccess, folder, socket string) {
	retry := backoff.Backoff{First: firstGrantRetry, Most: lastGrantRetry}
	var granted string // the digest of the folder for which it was done
	var next time.Time
	for {
		s, err := addonsStatus(ctx, socket)
		m.show(s, err == nil, time.Now())
		if err == nil && s.Digest != granted && !time.Now().Before(next) {
			if err := m.grant(ctx, access, folder); err == nil {
				granted = s.Digest
				retry.Reset()
				m.waits.Release(addonsRoleNotGranted)
			} else if ctx.Err() == nil {
				m.waits.HoldFor(addonsRoleNotGranted, err, addonsRoleNext)
				next = time.Now().Add(retry.Next())
			}
		}
		rest := addonsPeriod
		if granted == "" {
			rest = firstGrantRetry // the first add-ons wait for it
		}
		if backoff.Sleep(ctx, rest) != nil {
			return
		}
	}
}

func addonsStatus(ctx context.Context, socket string) (s plan.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, addonsTimeout)
	defer cancel()
	return s, local.Call(ctx, socket, http.MethodGet, "/status", &s)
}

// show holds the waits of the add-ons. While the manager does not answer, its last ones stay: that it does not is
// the supervisor's to say.
func (m *addonManager) show(s plan.Status, answered bool, now time.Time) {
	m.mu.Lock()
	m.status = nil
	if answered {
		m.status = &s
	}
	m.mu.Unlock()
	if !answered {
		return
	}
	waits := plan.Waits(s, now)
	for _, name := range plan.WaitNames {
		i := slices.IndexFunc(waits, func(w replica.Wait) bool { return w.Name == name })
		if i < 0 {
			m.waits.Release(name)
			continue
		}
		m.waits.HoldFor(name, errors.New(waits[i].Reason), waits[i].Next)
	}
}

// told is what the manager says of itself; nil: it does not answer, or has not been asked.
func (m *addonManager) told() *plan.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// grant sees that the manager's role allows what the folder needs. It only adds: replicas with another folder
// need theirs too, and what a former set made has to be deleted.
func (m *addonManager) grant(ctx context.Context, access clusterAccess, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	wanted, err := m.rules(ctx, folder)
	if err != nil {
		return fmt.Errorf("read what the add-ons in %s need: %w", folder, err)
	}
	own, err := rbac.NewForConfig(localAPI(access.files, access.port))
	if err != nil {
		return err
	}
	role, bound, err := addonsRole(ctx, own)
	if err != nil {
		return fmt.Errorf("read the add-on manager's role: %w", err)
	}
	if bound && len(plan.Lacking(planRules(role.Rules), wanted)) == 0 {
		return nil
	}
	cert, err := access.administrator(ctx)
	if err != nil {
		return fmt.Errorf("grant the add-on manager its role: %w", err)
	}
	client, err := bootstrapAPI(access.files, access.port, cert)
	if err == nil {
		err = widenAddonsRole(ctx, client, wanted)
	}
	if err != nil {
		return fmt.Errorf("grant the add-on manager its role: %w", err)
	}
	m.log.Info("the add-on manager's role was widened", "folder", folder)
	return nil
}

// addonsRole reads the role, empty where there is none, and whether it is bound.
func addonsRole(ctx context.Context, client rbac.RbacV1Interface) (role *rbacv1.ClusterRole, bound bool, err error) {
	role, err = client.ClusterRoles().Get(ctx, addonsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: addonsName}}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	_, err = client.ClusterRoleBindings().Get(ctx, addonsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return role, false, nil
	}
	return role, err == nil, err
}

// widenAddonsRole adds to the role what it lacks. It fails where another replica has changed it meanwhile: the next try
// reads it anew.
func widenAddonsRole(ctx context.Context, client rbac.RbacV1Interface, wanted []plan.Rule) error {
	role, bound, err := addonsRole(ctx, client)
	if err != nil {
		return err
	}
	for _, r := range plan.Lacking(planRules(role.Rules), wanted) {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: r.APIGroups, Resources: r.Resources,
			ResourceNames: r.ResourceNames, Verbs: r.Verbs})
	}
	if role.UID == "" {
		_, err = client.ClusterRoles().Create(ctx, role, metav1.CreateOptions{FieldManager: "quorate"})
	} else {
		_, err = client.ClusterRoles().Update(ctx, role, metav1.UpdateOptions{FieldManager: "quorate"})
	}
	if err != nil || bound {
		return err
	}
	_, err = client.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: addonsName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: addonsName},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: addonsName}},
	}, metav1.CreateOptions{FieldManager: "quorate"})
	return err
}

func planRules(rules []rbacv1.PolicyRule) (out []plan.Rule) {
	for _, r := range rules {
		out = append(out, plan.Rule{APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			Verbs: r.Verbs})
	}
	return out
}
