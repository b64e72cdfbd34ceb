package addons

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/certs"
)

const portlessService = "apiVersion: v1\nkind: Service\nmetadata: {namespace: kube-public, name: diff}\n"

// differences has a manager apply a set, a person change what it made, and the folder hold the next set.
func differences(t *testing.T, c *realCluster) {
	secret := func(password string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {namespace: default, name: diff}\nstringData: {password: " +
			password + "}\n"
	}
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		"changed.yaml": configMapYAML("default", "diff-changed", "right"),
		"gone.yaml":    configMapYAML("default", "diff-gone", "x"),
		"held.yaml":    configMapYAML("kube-public", "diff-held", "x"),
		"once.yaml":    labelled(configMapYAML("default", "diff-once", "first"), plan.EnsureExists),
		"same.yaml":    configMapYAML("default", "diff-same", "x"),
		"secret.yaml":  secret("hunter2")})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "the first set is in place", allInPlace(6))
	m.stop()
	for name, value := range map[string]string{"diff-changed": "wrong", "diff-once": "a person's"} {
		cm := c.configMap(t, "default", name)
		cm.Data["key"], cm.Data["of-another"] = value, "stays"
		if err := c.admin.Update(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gone.yaml", "held.yaml"} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	writeFolder(t, folder, map[string]string{"version": "2", "secret.yaml": secret("hunter3"),
		"new.yaml":     configMapYAML("default", "diff-new", "x"),
		"ns.yaml":      namespaceYAML("diff"),
		"inside.yaml":  configMapYAML("diff", "inside", "x"),
		"refused.yaml": portlessService + "spec: {prots: 7}\n"})
	c.grant(t, old, folder)

	got := c.diffs(t, folder)
	for i, o := range got.Objects {
		if o.Action == "fail" && strings.Contains(o.Reason, "prots") {
			got.Objects[i].Reason = "names the field"
		}
	}
	want := Differences{Folder: folder, Version: "2", Inventory: "1", Standing: plan.Newest, Faults: []string{},
		Same: 2, Objects: []Difference{
			{Object: "ConfigMap default/diff-changed", Action: "change", Reason: "it may differ from its manifest",
				Source: "changed.yaml", Changes: []plan.Change{{Path: "data.key", Before: "wrong", After: "right"}}},
			{Object: "ConfigMap default/diff-new", Action: "create", Reason: "it is not there", Source: "new.yaml"},
			{Object: "ConfigMap diff/inside", Action: "create", Source: "inside.yaml",
				Reason: "the set makes its namespace first, so it could not be checked"},
			{Object: "Namespace diff", Action: "create", Reason: "it is not there", Source: "ns.yaml"},
			{Object: "Secret default/diff", Action: "change", Reason: "it may differ from its manifest",
				Source: "secret.yaml", Changes: []plan.Change{{Path: "data.password", Before: "*** (before)",
					After: "*** (after)"}}},
			{Object: "Service kube-public/diff", Action: "fail", Reason: "names the field", Source: "refused.yaml"},
			{Object: "ConfigMap default/diff-gone", Action: "delete", Reason: "the set does not have it any more"},
			{Object: "ConfigMap kube-public/diff-held", Action: "stay",
				Reason: "Service kube-public/diff is not in place"},
		}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("before the pass:\n%s", d)
	}

	writeFolder(t, folder, map[string]string{"refused.yaml": portlessService + "spec: {ports: [{port: 80}]}\n"})
	c.grant(t, old, folder)
	m = c.manage(t, "master-a", folder, fast)
	m.becomes(t, "the second set is in place, and the first one's are deleted", func(s plan.Status) bool {
		return allInPlace(8)(s) && s.Kept == "" && c.configMap(t, "default", "diff-gone") == nil &&
			c.configMap(t, "kube-public", "diff-held") == nil
	})
	m.stop()
	want = Differences{Folder: folder, Version: "2", Inventory: "2", Standing: plan.Current, Faults: []string{},
		Same: 8, Objects: []Difference{}}
	if d := cmp.Diff(want, c.diffs(t, folder)); d != "" {
		t.Errorf("after the pass:\n%s", d)
	}
}

// diffs is what Diff finds as the manager, which must write nothing meanwhile.
func (c *realCluster) diffs(t *testing.T, folder string) Differences {
	t.Helper()
	before := c.resourceVersions(t)
	_, at := c.requests(t, 0)
	d, err := Diff(t.Context(), c.in.Files.Kubeconfig(certs.Addons), folder)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := c.requests(t, at)
	if writes, dry := writesOf(list); len(writes) > 0 || len(dry) == 0 {
		t.Errorf("with %d dry runs, these of its %d requests write: %v", len(dry), len(list), writes)
	}
	if d := cmp.Diff(before, c.resourceVersions(t)); d != "" {
		t.Errorf("it has written:\n%s", d)
	}
	return d
}

// resourceVersions are those of all objects of the kinds in the test's sets, the inventory and Events among them.
func (c *realCluster) resourceVersions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, kind := range []string{"Namespace", "ConfigMap", "Secret", "Service", "Event"} {
		var list unstructured.UnstructuredList
		list.SetAPIVersion("v1")
		list.SetKind(kind + "List")
		if err := c.admin.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			out[kind+" "+o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
		}
	}
	if out["ConfigMap "+plan.InventoryNamespace+"/"+plan.InventoryName] == "" {
		t.Error("there is no inventory")
	}
	return out
}
