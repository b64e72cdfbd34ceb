package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/internal/local"
	"github.com/quorate/quorate/internal/replica"
)

// managerProcess answers as the add-on manager's process does.
type managerProcess struct {
	mu     sync.Mutex
	status plan.Status
}

func (m *managerProcess) set(s plan.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = s
}

func (m *managerProcess) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	json.NewEncoder(w).Encode(m.status)
}

const addonsRolePath, addonsBindingPath = rbacPath + "clusterroles/quorate:addons",
	rbacPath + "clusterrolebindings/quorate:addons"

// The add-on manager's role is granted for the folder that it has, and again for one that has changed; it only grows.
func TestTheAddonManagerIsGrantedWhatItsFolderNeeds(t *testing.T) {
	_, a, in := renewing(t)
	api := serving(t, a, &in)
	in.cluster.Addons.Folder = "/etc/quorate/addons"
	a.keepAccess(t.Context(), joined{in}) // the agent's own role
	var mu sync.Mutex
	resource, failing := "configmaps", errBroken
	a.addons.rules = func(context.Context, string) ([]plan.Rule, error) {
		mu.Lock()
		defer mu.Unlock()
		err := failing
		failing = nil
		return []plan.Rule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"patch"}}}, err
	}
	manager := &managerProcess{status: plan.Status{Digest: "one", Standing: plan.Current}}
	if err := a.giveDirs(); err != nil {
		t.Fatal(err)
	}
	stop, err := local.Serve(controlplane.AddonsSocket(a.cfg.RunDir), manager)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.keepAddons(ctx, joined{in}) }()
	defer func() { cancel(); <-done }()
	held := func(name string) bool {
		return slices.ContainsFunc(a.tracker.All(), func(w replica.Wait) bool { return w.Name == name })
	}
	resources := func() (out []string) {
		api.mu.Lock()
		defer api.mu.Unlock()
		var role rbacv1.ClusterRole
		if api.objects[addonsRolePath] == nil || api.objects[addonsBindingPath] == nil {
			return nil
		}
		if err := json.Unmarshal(api.objects[addonsRolePath], &role); err != nil {
			t.Error(err)
		}
		for _, r := range role.Rules {
			out = append(out, r.Resources...)
		}
		return out
	}
	eventually(t, "a failure is told", func() bool { return held(addonsRoleNotGranted) })
	eventually(t, "it is granted, and no wait is left", func() bool {
		return slices.Equal(resources(), []string{"configmaps"}) && !held(addonsRoleNotGranted)
	})
	mu.Lock()
	resource = "secrets"
	mu.Unlock()
	manager.set(plan.Status{Digest: "two", Standing: plan.Older, Version: "1", Inventory: "2", Folder: "/etc/x"})
	eventually(t, "another folder's is added", func() bool {
		return slices.Equal(resources(), []string{"configmaps", "secrets"})
	})
	eventually(t, "what the manager waits for is told", func() bool { return held(plan.WaitOlder) })
	if s := a.report(t.Context()); s.Addons == nil || s.Addons.Inventory != "2" {
		t.Errorf("the status has %+v", s.Addons)
	}
	manager.set(plan.Status{Digest: "two", Standing: plan.Current})
	eventually(t, "a wait that is over is told no more", func() bool { return !held(plan.WaitOlder) })
}

// While the manager does not answer, the status has nothing of it, and what it waited for stays told.
func TestAnAddonManagerThatDoesNotAnswer(t *testing.T) {
	_, a, _ := renewing(t)
	now := time.Now()
	a.addons.show(plan.Status{Faults: []string{"x.yaml: bad"}}, true, now)
	a.addons.show(plan.Status{}, false, now)
	waits := a.tracker.All()
	if len(waits) != 1 || waits[0].Name != plan.WaitFolder || !strings.Contains(waits[0].Reason, "x.yaml") ||
		a.addons.told() != nil {
		t.Errorf("%+v, %+v", waits, a.addons.told())
	}
	if _, err := addonsStatus(t.Context(), t.TempDir()+"/none"); err == nil || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
