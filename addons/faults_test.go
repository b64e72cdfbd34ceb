package addons

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admission "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/addons/plan"
)

// TestAFolderIsKeptThroughFaults holds managers against the real apiserver while it, or somebody else, does wrong.
func TestAFolderIsKeptThroughFaults(t *testing.T) {
	withCluster(t, func(t *testing.T, c *realCluster) {
		for _, k := range []struct {
			name string
			test func(*testing.T, *realCluster)
		}{
			{"a server that fails is one fault, and not of each object", serverFails},
			{"what fails of one kind is told once", oneKindFails},
			{"a role that does not let it list is enough", narrowRole},
			{"an object is remembered as it was when it was right", rememberedRight},
			{"an object whose kind is not served is not gone", kindNotServed},
			{"a kind that the newer set has no more is deleted with its objects", lastOfItsKind},
			{"what somebody changes back each time is left to them", contested},
			{"a refused object does not keep what is unrelated", refusedKeepsNothing},
			{"a webhook waits for its pods", webhookWaits},
		} {
			t.Run(k.name, func(t *testing.T) {
				c.reset(t)
				k.test(t, c)
			})
		}
	})
}

// numbered is a folder of ConfigMaps.
func numbered(t *testing.T, name string, count int) string {
	files := map[string]string{"version": "1"}
	for n := range count {
		files[fmt.Sprintf("%d.yaml", n)] = configMapYAML("default", fmt.Sprintf("%s-%02d", name, n), "right")
	}
	return writeFolder(t, t.TempDir(), files)
}

func serverFails(t *testing.T, c *realCluster) {
	var code atomic.Int64
	way := c.proxy(t, func(*http.Request) int { return int(code.Load()) })
	folder := numbered(t, "outage", 3)
	c.grant(t, folder)
	m := c.manageBy(t, "master-a", folder, way, fast)
	m.becomes(t, "all are in place", allInPlace(3))
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusGatewayTimeout} {
		code.Store(int64(status))
		s := m.becomes(t, "the outage is told", func(s plan.Status) bool { return s.Unreachable != "" })
		if len(s.Failing) > 0 || s.InPlace != 3 {
			t.Errorf("%d: in place are %d, these fail: %+v", status, s.InPlace, s.Failing)
		}
		code.Store(0)
		m.becomes(t, "it goes on", func(s plan.Status) bool { return s.Unreachable == "" && allInPlace(3)(s) })
	}
	// The outage begins within a pass, when the inventory has been read.
	var asked atomic.Bool
	way = c.proxy(t, func(r *http.Request) int {
		if strings.Contains(r.URL.Path, "/configmaps/outage-") && r.Method == http.MethodPatch {
			asked.Store(true)
		}
		if asked.Load() {
			return http.StatusServiceUnavailable
		}
		return 0
	})
	m.stop()
	m = c.manageBy(t, "master-b", folder, way, fast)
	s := m.becomes(t, "the outage is told", func(s plan.Status) bool { return s.Unreachable != "" })
	if !asked.Load() || len(s.Failing) > 0 {
		t.Errorf("these fail: %+v", s.Failing)
	}
	if got := c.events(t, "default", "AddonFailed"); len(got) > 0 {
		t.Errorf("the events are %q", got)
	}
}

func oneKindFails(t *testing.T, c *realCluster) {
	way := c.proxy(t, func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/configmaps") && r.Method == http.MethodGet {
			return http.StatusServiceUnavailable
		}
		return 0
	})
	folder := numbered(t, "kind", plan.ReadByName+2)
	writeFolder(t, folder, map[string]string{"account.yaml": "apiVersion: v1\nkind: ServiceAccount\n" +
		"metadata: {namespace: default, name: beside-a-failing-kind}\n"})
	c.grant(t, folder)
	m := c.manageBy(t, "master-a", folder, way, fast)
	s := m.becomes(t, "the others are in place", func(s plan.Status) bool {
		return s.InPlace == 1 && len(s.Failing) == plan.ReadByName+2
	})
	time.Sleep(3 * time.Second)
	if got := c.events(t, "default", "AddonFailed"); len(got) != 1 ||
		!strings.Contains(got[0], "each other one of its kind") {
		t.Errorf("the events are %q", got)
	}
	if s.Unreachable != "" {
		t.Errorf("it is taken for an outage: %s", s.Unreachable)
	}
}

func narrowRole(t *testing.T, c *realCluster) {
	folder := numbered(t, "narrow", plan.ReadByName+2)
	c.grant(t, folder)
	var role rbacv1.ClusterRole
	if err := c.admin.Get(t.Context(), client.ObjectKey{Name: "quorate:addons"}, &role); err != nil {
		t.Fatal(err)
	}
	before := len(role.Rules)
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs,
			"list")
	})
	if len(role.Rules) == before {
		t.Fatal("the role has no list to take away")
	}
	if err := c.admin.Update(t.Context(), &role); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	c.manage(t, "master-a", folder, fast).becomes(t, "all are in place", allInPlace(plan.ReadByName+2))
}

// rememberedRight has a person put an object right after it was observed, and spoil it again once it was compared.
func rememberedRight(t *testing.T, c *realCluster) {
	folder := numbered(t, "before", atOnce)
	writeFolder(t, folder, map[string]string{"last.yaml": configMapYAML("default", "then", "right")})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "all are in place", allInPlace(atOnce+1))
	m.stop()
	set := func(value string) {
		then := c.configMap(t, "default", "then")
		then.Data["key"] = value
		if err := c.admin.Update(t.Context(), then); err != nil {
			t.Fatal(err)
		}
	}
	let := make(chan struct{})
	var held atomic.Int64
	c.webhook(t, "holding", func(r *admissionv1.AdmissionRequest) string {
		if strings.HasPrefix(r.Name, "before-") && *r.DryRun {
			held.Add(1)
			<-let
		}
		return ""
	})
	set("wrong")
	m = c.manage(t, "master-a", folder, fast)
	eventually(t, "the first are compared", time.Minute, func() error {
		if held.Load() < atOnce {
			return errors.New("they are not")
		}
		return nil
	})
	set("right")
	close(let)
	m.becomes(t, "all are in place", allInPlace(atOnce+1))
	set("wrong")
	eventually(t, "it is put right", 20*time.Second, func() error {
		if got := c.configMap(t, "default", "then").Data["key"]; got != "right" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// definition creates the definition of a kind as a person, and waits until it is served.
func (c *realCluster) definition(t *testing.T, plural, kind string) *unstructured.Unstructured {
	t.Helper()
	objects, err := decode(fmt.Appendf(nil, toolDefinition, plural, kind))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.admin.Create(t.Context(), objects[0]); err != nil {
		t.Fatal(err)
	}
	c.served(t, kind, true)
	return objects[0]
}

func (c *realCluster) served(t *testing.T, kind string, want bool) {
	t.Helper()
	eventually(t, "the kind is served, or not", time.Minute, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind + "List"})
		if err := c.admin.List(t.Context(), list); (err == nil) != want {
			return fmt.Errorf("the list: %v", err)
		}
		return nil
	})
}

// thing reads an object of a kind of a test; nil: it is not there.
func (c *realCluster) thing(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
	err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func kindNotServed(t *testing.T, c *realCluster) {
	definition := c.definition(t, "lamps", "Lamp")
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		"lamp.yaml": "apiVersion: example.com/v1\nkind: Lamp\nmetadata: {namespace: default, name: lit}\n",
		"cm.yaml":   configMapYAML("default", "beside-a-lamp", "x")})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "both are in place", allInPlace(2))
	serve := func(served bool) {
		if err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
			t.Fatal(err)
		}
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		versions[0].(map[string]any)["served"] = served
		if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		if err := c.admin.Update(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		c.served(t, "Lamp", served)
	}
	serve(false)
	if err := os.Remove(filepath.Join(folder, "lamp.yaml")); err != nil {
		t.Fatal(err)
	}
	writeFolder(t, folder, map[string]string{"version": "2"})
	m.becomes(t, "it is kept, and said so", func(s plan.Status) bool {
		return s.Version == "2" && strings.Contains(s.Kept, "Lamp default/lit: the cluster does not serve its kind")
	})
	if got := c.configMap(t, plan.InventoryNamespace, plan.InventoryName).Data["objects"]; !strings.Contains(got,
		"Lamp") {
		t.Errorf("the inventory is %q", got)
	}
	serve(true)
	eventually(t, "it is deleted", time.Minute, func() error {
		if c.thing(t, "Lamp", "lit") != nil {
			return errors.New("it is there")
		}
		return nil
	})
}

// k3s#11975: an add-on's objects were deleted only of the kinds that its file still had, so those of a kind that had
// been taken out of the file stayed for ever, once the server had been restarted. Here the newer set has no object of
// the kind, and the manager that deletes is another process.
func lastOfItsKind(t *testing.T, c *realCluster) {
	c.definition(t, "vases", "Vase")
	files := map[string]string{"version": "1", "cm.yaml": configMapYAML("default", "beside-vases", "x"),
		"account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: default, name: of-vases}\n",
		"one.yaml":     "apiVersion: example.com/v1\nkind: Vase\nmetadata: {namespace: default, name: one}\n",
		"two.yaml":     "apiVersion: example.com/v1\nkind: Vase\nmetadata: {namespace: default, name: two}\n"}
	older := writeFolder(t, t.TempDir(), files)
	newer := writeFolder(t, t.TempDir(), map[string]string{"version": "2", "cm.yaml": files["cm.yaml"]})
	c.grant(t, older, newer)
	m := c.manage(t, "master-a", older, fast)
	m.becomes(t, "all are in place", allInPlace(4))
	m.stop()
	c.manage(t, "master-a", newer, fast)
	eventually(t, "what the set has no kind of any more is deleted", time.Minute, func() error {
		if c.thing(t, "Vase", "one") != nil || c.thing(t, "Vase", "two") != nil {
			return errors.New("it is there")
		}
		return nil
	})
	eventually(t, "the inventory has the rest", time.Minute, func() error {
		got := c.configMap(t, plan.InventoryNamespace, plan.InventoryName).Data["objects"]
		if got != "v1 ConfigMap default beside-vases\n" {
			return fmt.Errorf("the inventory is %q", got)
		}
		return nil
	})
}

func contested(t *testing.T, c *realCluster) {
	folder := numbered(t, "beside-a-fight", 1)
	writeFolder(t, folder, map[string]string{"fought.yaml": configMapYAML("default", "fought-for", "ours")})
	c.grant(t, folder)
	all := []*running{c.manage(t, "master-a", folder, fast), c.manage(t, "master-b", folder, fast)}
	for _, m := range all {
		m.becomes(t, "both are in place", allInPlace(2))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var back atomic.Int64
	var other sync.WaitGroup
	other.Go(func() {
		for ctx.Err() == nil {
			if cm := c.configMap(t, "default", "fought-for"); cm != nil && cm.Data["key"] != "theirs" {
				cm.Data["key"] = "theirs"
				if err := c.admin.Update(ctx, cm, client.FieldOwner("their-controller")); err == nil {
					back.Add(1)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	defer other.Wait()
	defer cancel()
	for _, m := range all {
		s := m.becomes(t, "the fight is named", func(s plan.Status) bool { return len(s.Contested) == 1 })
		for _, part := range []string{"data.key", "their-controller"} {
			if !strings.Contains(s.Contested[0].Reason, part) {
				t.Errorf("the reason is %q", s.Contested[0].Reason)
			}
		}
		if w := plan.Waits(s, time.Now()); len(w) != 1 || w[0].Name != plan.WaitContested ||
			!strings.Contains(w[0].Reason, "ConfigMap default/fought-for") {
			t.Errorf("the waits are %+v", w)
		}
	}
	fought := back.Load()
	_, at := c.requests(t, 0)
	time.Sleep(window(8*time.Second, 45*time.Second))
	list, _ := c.requests(t, at)
	writes, _ := writesOf(list)
	t.Logf("it was changed back %d times before it was given up, and %d times after", fought, back.Load()-fought)
	if writes = slices.DeleteFunc(writes, func(r request) bool { return strings.Contains(r.uri, "/events") }); len(
		writes) > 0 {
		t.Errorf("the managers still write: %v", writes)
	}
	if fought > 20 {
		t.Errorf("it was fought for %d times", fought)
	}
	if got := c.events(t, "default", "AddonContested"); len(got) != len(all) {
		t.Errorf("the events are %q", got)
	}
}

func refusedKeepsNothing(t *testing.T, c *realCluster) {
	c.webhook(t, "refusing", func(r *admissionv1.AdmissionRequest) string {
		if r.Name == "never" {
			return "never"
		}
		return ""
	})
	foreign := c.configMap(t, "kube-system", "extension-apiserver-authentication") // the apiserver's own
	if foreign == nil {
		t.Fatal("there is no object of somebody else")
	}
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1", "ns.yaml": namespaceYAML("other-place"),
		"a.yaml": configMapYAML("default", "former", "x"), "b.yaml": configMapYAML("other-place", "former", "x"),
		"c.yaml": configMapYAML("kube-system", "former", "x")})
	newer := writeFolder(t, t.TempDir(), map[string]string{"version": "2", "ns.yaml": namespaceYAML("other-place"),
		"a.yaml": configMapYAML("kube-system", foreign.Name, "x"), "b.yaml": configMapYAML("default", "never", "x")})
	c.grant(t, folder, newer)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "the older set is in place", allInPlace(4))
	m.stop()
	m = c.manage(t, "master-a", newer, fast)
	eventually(t, "what is unrelated to the failing object is deleted", time.Minute, func() error {
		if c.configMap(t, "other-place", "former") != nil || c.configMap(t, "kube-system", "former") != nil {
			return errors.New("it is there")
		}
		return nil
	})
	m.becomes(t, "what may be related is kept, and said so", func(s plan.Status) bool {
		return strings.Contains(s.Kept, "ConfigMap default/former: ConfigMap default/never is not in place")
	})
	if c.configMap(t, "default", "former") == nil {
		t.Error("the former object went before the new one stood")
	}
}

func webhookWaits(t *testing.T, c *realCluster) {
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1", "ns.yaml": namespaceYAML("hooked"),
		"pods.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: hooked, name: hook}\nspec:\n" +
			"  selector: {matchLabels: {app: x}}\n  template:\n    metadata: {labels: {app: x}}\n" +
			"    spec: {containers: [{name: c, image: none}]}\n",
		"hook.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n" +
			"metadata: {name: hook}\nwebhooks:\n- name: hook.example.com\n  admissionReviewVersions: [v1]\n" +
			"  sideEffects: None\n  clientConfig: {service: {namespace: hooked, name: hook}}\n" +
			"  rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [nothing], operations: [CREATE]}]\n"})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "the webhook waits", func(s plan.Status) bool {
		return s.InPlace == 2 && slices.ContainsFunc(s.NotReady, func(o plan.ObjectStatus) bool {
			return o.Object == "ValidatingWebhookConfiguration hook" &&
				o.Reason == "it waits for Deployment hooked/hook"
		})
	})
	before, _ := m.status()
	m.becomes(t, "some passes go by",
		func(s plan.Status) bool { return s.Pass.After(before.Pass.Add(2 * time.Second)) })
	var hook admission.ValidatingWebhookConfiguration
	if err := c.admin.Get(t.Context(), client.ObjectKey{Name: "hook"}, &hook); !apierrors.IsNotFound(err) {
		t.Fatalf("the webhook is there before its pods: %v", err)
	}
	var pods appsv1.Deployment // no kubelet runs here: what one would lead to is written
	if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: "hooked", Name: "hook"}, &pods); err != nil {
		t.Fatal(err)
	}
	pods.Status = appsv1.DeploymentStatus{ObservedGeneration: pods.Generation, Replicas: 1, UpdatedReplicas: 1,
		ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True"},
			{Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"}}}
	if err := c.admin.Status().Update(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	m.becomes(t, "the webhook is made", allInPlace(3))
}

// A request that ends because another's outage has ended the pass says nothing about its object.
func TestWhatFailsAfterThePassHasEndedIsNoFaultOfItsObject(t *testing.T) {
	why := errors.New("the apiserver fails")
	ctx, end := context.WithCancelCause(t.Context())
	end(why)
	if err := (&cluster{}).outage(ctx, fmt.Errorf("dry-run failed: %w", context.Canceled)); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if err := (&cluster{}).outage(ctx, nil); err != nil {
		t.Errorf("nothing has failed, and it is %v", err)
	}
}
