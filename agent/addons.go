package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbac "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/backoff"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/replica"
)

// addonsName is the user that the add-on manager is in the cluster, its role and its binding.
const addonsName = "quorate:addons"

// addonsRoleNotGranted is the wait for what the add-on manager may do.
const (
	addonsRoleNotGranted = "addons-role-not-granted"
	addonsRoleNext       = "It is tried again by itself, at most half a minute later. Add-ons that it does not " +
		"need go on."
)

// keepAddons tells what the add-on manager says of itself, and grants it what its folder needs. The manager runs as a
// component, and goes on whatever happens here.
func (a *Agent) keepAddons(ctx context.Context, in joined) {
	folder := controlplane.AddonsFolder(in.cluster, a.cfg.RunDir)
	if folder == "" {
		return
	}
	if _, err := a.awaitAPIServer(ctx, in); err != nil {
		return // the replica stops
	}
	in.makeBundle = false // there is one by now
	retry := backoff.Backoff{First: firstGrantRetry, Most: lastGrantRetry}
	var granted string // the digest of the folder for which it was done
	var next time.Time
	for {
		s, err := addonsStatus(ctx, controlplane.AddonsSocket(a.cfg.RunDir))
		a.showAddons(s, err == nil, time.Now())
		if err == nil && s.Digest != granted && !time.Now().Before(next) {
			if err := a.grantAddons(ctx, in, folder); err == nil {
				granted = s.Digest
				retry.Reset()
				a.waits.Release(addonsRoleNotGranted)
			} else if ctx.Err() == nil {
				a.waits.HoldFor(addonsRoleNotGranted, err, addonsRoleNext)
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

// showAddons holds the waits of the add-ons. While the manager does not answer, its last ones stay: that it does not is
// the supervisor's to say.
func (a *Agent) showAddons(s plan.Status, answered bool, now time.Time) {
	a.mu.Lock()
	a.addons = nil
	if answered {
		a.addons = &s
	}
	a.mu.Unlock()
	if !answered {
		return
	}
	waits := plan.Waits(s, now)
	for _, name := range plan.WaitNames {
		i := slices.IndexFunc(waits, func(w replica.Wait) bool { return w.Name == name })
		if i < 0 {
			a.waits.Release(name)
			continue
		}
		a.waits.HoldFor(name, errors.New(waits[i].Reason), waits[i].Next)
	}
}

// grantAddons sees that the manager's role allows what the folder needs. It only adds: replicas with another folder
// need theirs too, and what a former set made has to be deleted.
func (a *Agent) grantAddons(ctx context.Context, in joined, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	wanted, err := a.cfg.AddonRules(ctx, folder)
	if err != nil {
		return fmt.Errorf("read what the add-ons in %s need: %w", folder, err)
	}
	own, err := rbac.NewForConfig(localAPI(a.files, in.cluster.Endpoint.Port))
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
	cert, err := a.bootstrapClient(ctx, in)
	if err != nil {
		return fmt.Errorf("grant the add-on manager its role: %w", err)
	}
	client, err := bootstrapAPI(a.files, in.cluster.Endpoint.Port, cert)
	if err == nil {
		err = widenAddonsRole(ctx, client, wanted)
	}
	if err != nil {
		return fmt.Errorf("grant the add-on manager its role: %w", err)
	}
	a.cfg.Log.Info("the add-on manager's role was widened", "folder", folder)
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
