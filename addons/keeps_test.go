package addons

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/addons/plan"
)

// TestAFolderIsKept holds managers against the real apiserver, with the rights of their own role and no more.
func TestAFolderIsKept(t *testing.T) {
	withCluster(t, func(t *testing.T, c *realCluster) {
		for _, k := range []struct {
			name string
			test func(*testing.T, *realCluster)
		}{
			{"what is changed or deleted by hand comes back", changedByHand},
			{"what exists and was not made by it is left alone", foreign},
			{"what a person makes meanwhile is left alone", madeMeanwhile},
			{"EnsureExists is made and then left alone", ensureExists},
			{"an empty, a missing and an unreadable folder delete nothing", emptyFolder},
			{"a bad manifest keeps the others, and nothing is deleted", badManifest},
			{"a webhook that refuses fails one object", refusingWebhook},
			{"a CRD that comes late is taken up", lateDefinition},
			{"what a new set has no more is deleted, and what others made is not", prunes},
			{"of two versions the newer one stays, whoever was first", twoVersions},
			{"what an older set has in flight does not outlive it", inFlight},
			{"of two sets of one version the first one stays", twoOfOneVersion},
			{"what would be done is shown, and nothing is written", differences},
			{"the apiserver is shot, and the managers go on", shotAPIServer},
		} {
			t.Run(k.name, func(t *testing.T) {
				c.reset(t)
				k.test(t, c)
			})
		}
	})
}

// window is how long a test watches that nothing happens: the second with QUORATE_ADDONS.
func window(short, long time.Duration) time.Duration {
	if os.Getenv("QUORATE_ADDONS") != "" {
		return long
	}
	return short
}

func changedByHand(t *testing.T, c *realCluster) {
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1\n", "ns.yaml": namespaceYAML("hand"),
		"a/one.yaml": configMapYAML("hand", "one", "right"), "a/two.yaml": configMapYAML("hand", "two", "right"),
		"b/kustomization.yaml": "namespace: hand\nresources: [three.yaml]\n" +
			"patches: [{target: {kind: ConfigMap}, patch: '[{\"op\": \"add\", \"path\": \"/data/more\", \"value\": " +
			"\"built\"}]'}]\n",
		"b/three.yaml": configMapYAML("other", "three", "right"),
		"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {namespace: hand, name: s}\n" +
			"stringData: {password: hunter2}\n"})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "all five are in place and ready", func(s plan.Status) bool {
		return allInPlace(5)(s) &&
			s.Ready == 5
	})
	if three := c.configMap(t, "hand", "three"); three == nil || three.Data["more"] != "built" {
		t.Errorf("the kustomization came to %v", three)
	}
	_, at := c.requests(t, 0)
	time.Sleep(3 * time.Second)
	list, _ := c.requests(t, at)
	if writes, dry := writesOf(list); len(writes)+len(dry) > 0 || len(list) == 0 {
		t.Errorf("of %d requests in 3 s without a change these write, or would: %v %v", len(list), writes, dry)
	}
	one := c.configMap(t, "hand", "one")
	one.Data["key"], one.Data["of-another"] = "wrong", "stays"
	if err := c.admin.Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := c.admin.Delete(t.Context(), c.configMap(t, "hand", "two")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are as they should be", time.Minute, func() error {
		one, two := c.configMap(t, "hand", "one"), c.configMap(t, "hand", "two")
		if one.Data["key"] != "right" || one.Data["of-another"] != "stays" || two == nil {
			return fmt.Errorf("one is %v, two is %v", one.Data, two)
		}
		return nil
	})
}

func foreign(t *testing.T, c *realCluster) {
	for _, name := range []string{"foreign", "wanted"} {
		if err := c.admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
			Name: name}, Data: map[string]string{"key": "a person's"}}); err != nil {
			t.Fatal(err)
		}
	}
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		"foreign.yaml": configMapYAML("default", "foreign", "ours"),
		"wanted.yaml": strings.Replace(configMapYAML("default", "wanted", "ours"), "name: \"wanted\"",
			`name: wanted, annotations: {`+plan.TakeOverAnnotation+`: "true"}`, 1)})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "one is taken over, one refused", func(s plan.Status) bool {
		return s.InPlace == 1 && len(s.Failing) == 1 && s.Failing[0].Object == "ConfigMap default/foreign"
	})
	if got := c.configMap(t, "default", "foreign"); got.Data["key"] != "a person's" || len(got.Labels) > 0 {
		t.Errorf("the foreign object is now %v %v", got.Labels, got.Data)
	}
	if got := c.configMap(t, "default", "wanted"); got.Data["key"] != "ours" {
		t.Errorf("what the manifest takes over is %v", got.Data)
	}
	if got := c.events(t, "default", "AddonFailed"); len(got) != 1 || !strings.Contains(got[0], "ConfigMap foreign") {
		t.Errorf("the events are %q", got)
	}
	// What was taken over was not made, so it is never deleted.
	before := t.TempDir()
	if err := os.CopyFS(before, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	writeFolder(t, folder, map[string]string{"version": "2", "other.yaml": configMapYAML("default", "other", "x")})
	for _, name := range []string{"wanted.yaml", "foreign.yaml"} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	c.grant(t, before, folder)
	m.becomes(t, "it is released", func(s plan.Status) bool { return len(s.Released) == 1 && s.InPlace == 1 })
	if c.configMap(t, "default", "wanted") == nil || c.configMap(t, "default", "foreign") == nil {
		t.Error("an object that the manager had not made was deleted")
	}
}

func ensureExists(t *testing.T, c *realCluster) {
	manifest := strings.Replace(configMapYAML("default", "once", "first"), `name: "once"`,
		"name: once, labels: {"+plan.ModeLabel+": EnsureExists}", 1)
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1", "once.yaml": manifest})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "it is made", allInPlace(1))
	once := c.configMap(t, "default", "once")
	once.Data["key"] = "a person's"
	if err := c.admin.Update(t.Context(), once); err != nil {
		t.Fatal(err)
	}
	before, _ := m.status()
	m.becomes(t, "some passes go by",
		func(s plan.Status) bool { return s.Pass.After(before.Pass.Add(3 * time.Second)) })
	if got := c.configMap(t, "default", "once").Data["key"]; got != "a person's" {
		t.Errorf("it was changed to %q", got)
	}
	if err := c.admin.Delete(t.Context(), once); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is made again", time.Minute, func() error {
		if c.configMap(t, "default", "once") == nil {
			return errors.New("it is not there")
		}
		return nil
	})
}

func emptyFolder(t *testing.T, c *realCluster) {
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		"a/kept.yaml": configMapYAML("default", "kept", "x")})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "it is in place", allInPlace(1))
	aside := filepath.Join(t.TempDir(), "aside")
	still := func(what string) {
		t.Helper()
		m.becomes(t, what, func(s plan.Status) bool { return len(s.Faults) > 0 && s.InPlace == 0 && s.Objects == 0 })
		before, _ := m.status()
		m.becomes(t, "some passes go by",
			func(s plan.Status) bool { return s.Pass.After(before.Pass.Add(time.Second)) })
		if c.configMap(t, "default", "kept") == nil {
			t.Fatalf("%s: the object was deleted", what)
		}
	}
	// k0s PR#8220: its applier saw a stack's folder that was made and not yet filled, and pruned the stack. Here the
	// folder is empty under a higher version, which is as near to an order to delete as an accident can come.
	if err := os.Rename(filepath.Join(folder, "a"), aside); err != nil {
		t.Fatal(err)
	}
	writeFolder(t, folder, map[string]string{"version": "2"})
	still("an empty folder")
	if err := os.Remove(filepath.Join(folder, "version")); err != nil {
		t.Fatal(err)
	}
	still("a folder without a version")
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	still("no folder")
	if err := os.Symlink(folder, folder); err != nil { // root may read what has no permission; a loop, nobody
		t.Fatal(err)
	}
	still("an unreadable folder")
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, filepath.Join(folder, "a")); err != nil {
		t.Fatal(err)
	}
	writeFolder(t, folder, map[string]string{"version": "3"})
	m.becomes(t, "the folder is back", allInPlace(1))
}

func badManifest(t *testing.T, c *realCluster) {
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		"good.yaml": configMapYAML("default", "good", "x"), "late.yaml": configMapYAML("default", "late", "x")})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "both are in place", allInPlace(2))
	writeFolder(t, folder, map[string]string{"version": "2", "late.yaml": "kind: ConfigMap\n  bad: [",
		"good.yaml":    configMapYAML("default", "good", "changed"),
		"refused.yaml": "apiVersion: v1\nkind: Service\nmetadata: {namespace: default, name: bad}\nspec: {prots: 7}\n"})
	c.grant(t, folder)
	s := m.becomes(t, "the fault and the failure are told", func(s plan.Status) bool {
		return s.Version == "2" && len(s.Faults) == 1 && s.InPlace == 1 && len(s.Failing) == 1
	})
	if !strings.Contains(s.Faults[0], "late.yaml: document 1") || !strings.Contains(s.Failing[0].Reason, "prots") {
		t.Errorf("the faults are %q, what fails is %+v", s.Faults, s.Failing)
	}
	if !strings.Contains(s.Kept, "faults") || c.configMap(t, "default", "late") == nil {
		t.Errorf("what the bad file held is not kept: %q", s.Kept)
	}
	if got := c.configMap(t, "default", "good").Data["key"]; got != "changed" {
		t.Errorf("the good one is %q", got)
	}
	names := []string{}
	for _, w := range plan.Waits(s, time.Now().Add(time.Minute)) {
		names = append(names, w.Name)
	}
	if !slices.Equal(names, []string{plan.WaitFolder, plan.WaitFailing}) {
		t.Errorf("the waits are %q", names)
	}
}

func prunes(t *testing.T, c *realCluster) {
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1.9", "ns.yaml": namespaceYAML("pruned"),
		"one.yaml": configMapYAML("pruned", "one", "x"), "two.yaml": configMapYAML("default", "two-of-pruned", "x"),
		"stays.yaml": configMapYAML("default", "stays", "x"), "anew.yaml": configMapYAML("default", "anew", "x")})
	c.grant(t, folder)
	m := c.manage(t, "master-a", folder, fast)
	m.becomes(t, "all are in place", allInPlace(5))
	m.stop()
	// The copy of a person has the label, and nothing else of what the manager makes.
	copied := c.configMap(t, "default", "stays")
	copied.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "copied", Labels: copied.Labels}
	if err := c.admin.Create(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	// This one is in the inventory too, but what is there now is a person's.
	anew := c.configMap(t, "default", "anew")
	if err := c.admin.Delete(t.Context(), anew); err != nil {
		t.Fatal(err)
	}
	anew.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "anew", Labels: anew.Labels}
	if err := c.admin.Create(t.Context(), anew); err != nil {
		t.Fatal(err)
	}
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ns.yaml", "one.yaml", "two.yaml", "anew.yaml"} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	writeFolder(t, folder, map[string]string{"version": "1.10"})
	c.grant(t, old, folder)
	m = c.manage(t, "master-a", folder, fast)
	eventually(t, "two are deleted", time.Minute, func() error {
		if c.configMap(t, "pruned", "one") != nil || c.configMap(t, "default", "two-of-pruned") != nil {
			return errors.New("they are there")
		}
		return nil
	})
	s := m.becomes(t, "two are released", func(s plan.Status) bool {
		return len(s.Released) == 2 && s.Kept == ""
	})
	var ns corev1.Namespace
	if err := c.admin.Get(t.Context(), client.ObjectKey{Name: "pruned"}, &ns); err != nil ||
		ns.DeletionTimestamp != nil {
		t.Errorf("the namespace: %v, deleted at %v (%+v)", err, ns.DeletionTimestamp, s.Released)
	}
	for _, name := range []string{"copied", "stays", "anew"} {
		if c.configMap(t, "default", name) == nil {
			t.Errorf("%s was deleted", name)
		}
	}
	inventory := c.configMap(t, plan.InventoryNamespace, plan.InventoryName)
	if got := inventory.Data["objects"]; got != "v1 ConfigMap default stays\n" {
		t.Errorf("the inventory is %q", got)
	}
}

// k3s#1607: while two servers were upgraded one after the other, each applied its own version of an add-on in turn, and
// its pods were deployed anew until the last server was done. Here the second folder has one object changed, one more
// and one less, and the managers run at once, each of them first once.
func twoVersions(t *testing.T, c *realCluster) {
	older := writeFolder(t, t.TempDir(), map[string]string{"version": "2026.9",
		"a.yaml": configMapYAML("default", "shared", "older"), "b.yaml": configMapYAML("default", "only-older", "x")})
	newer := writeFolder(t, t.TempDir(), map[string]string{"version": "2026.10",
		"a.yaml": configMapYAML("default", "shared", "newer"), "b.yaml": configMapYAML("default", "only-newer", "x")})
	c.grant(t, older, newer)
	for _, first := range []string{"older", "newer"} {
		t.Run(first+" first", func(t *testing.T) {
			c.reset(t)
			var o, n *running
			if first == "older" {
				o = c.manage(t, "older", older, fast)
				o.becomes(t, "the older set is in place", allInPlace(2))
				n = c.manage(t, "newer", newer, fast)
			} else {
				n = c.manage(t, "newer", newer, fast)
				n.becomes(t, "the newer set is in place", allInPlace(2))
				o = c.manage(t, "older", older, fast)
			}
			n.becomes(t, "the newer set is in place", func(s plan.Status) bool {
				return allInPlace(2)(s) &&
					s.Ready == 2
			})
			s := o.becomes(t, "the older set stands back", func(s plan.Status) bool { return s.Standing == plan.Older })
			if w := plan.Waits(s, time.Now()); len(w) != 1 || w[0].Name != plan.WaitOlder ||
				!strings.Contains(w[0].Reason, "2026.10") {
				t.Errorf("it says %+v", w)
			}
			eventually(t, "what only the older set had is gone", time.Minute, func() error {
				if c.configMap(t, "default", "only-older") != nil {
					return errors.New("it is there")
				}
				return nil
			})
			time.Sleep(time.Second) // the inventory is written after it
			version := c.configMap(t, "default", "shared").ResourceVersion
			_, at := c.requests(t, 0)
			time.Sleep(window(3*time.Second, 2*time.Minute))
			list, _ := c.requests(t, at)
			writes, dry := writesOf(list)
			t.Logf("two managers: %d requests, %d dry runs, %d writes", len(list), len(dry), len(writes))
			if len(writes) > 0 || len(list) == 0 {
				t.Errorf("these of %d requests write: %v", len(list), writes)
			}
			shared := c.configMap(t, "default", "shared")
			if shared.Data["key"] != "newer" || shared.ResourceVersion != version {
				t.Errorf("the shared object is %v, %s then %s", shared.Data, version, shared.ResourceVersion)
			}
			if c.configMap(t, "default", "only-newer") == nil || c.configMap(t, "default", "only-older") != nil {
				t.Error("an object of the newer set is gone, or one of the older is there")
			}
		})
	}
}

func twoOfOneVersion(t *testing.T, c *realCluster) {
	one := writeFolder(t, t.TempDir(), map[string]string{"version": "1", "a.yaml": configMapYAML("default", "same",
		"one")})
	two := writeFolder(t, t.TempDir(), map[string]string{"version": "1", "a.yaml": configMapYAML("default", "same",
		"two")})
	c.grant(t, one)
	c.manage(t, "one", one, fast).becomes(t, "the first is in place", allInPlace(1))
	m := c.manage(t, "two", two, fast)
	m.becomes(t, "the second stands back", func(s plan.Status) bool { return s.Standing == plan.Differs })
	_, at := c.requests(t, 0)
	time.Sleep(window(2*time.Second, time.Minute))
	list, _ := c.requests(t, at)
	if writes, _ := writesOf(list); len(writes) > 0 || c.configMap(t, "default", "same").Data["key"] != "one" {
		t.Errorf("these write: %v", writes)
	}
	writeFolder(t, two, map[string]string{"version": "2"})
	m.becomes(t, "a higher version counts", allInPlace(1))
	if got := c.configMap(t, "default", "same").Data["key"]; got != "two" {
		t.Errorf("it is %q", got)
	}
}

// k0s#5122: once its lease was lost for a moment, the applier was never started again, and nothing was applied from
// then on. Here there is no lease; the apiserver goes while managers run, and what happens after it is back must be
// seen.
func shotAPIServer(t *testing.T, c *realCluster) {
	folder := writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		"a.yaml": configMapYAML("default", "outlives", "x")})
	c.grant(t, folder)
	var all []*running
	for _, name := range []string{"master-a", "master-b"} {
		m := c.manage(t, name, folder, fast)
		m.becomes(t, "it is in place", allInPlace(1))
		all = append(all, m)
	}
	c.killAPIServer()
	for _, m := range all {
		m.becomes(t, "the outage is told", func(s plan.Status) bool {
			return s.Unreachable != "" &&
				len(s.Failing) == 0
		})
	}
	c.startAPIServer(t)
	for _, m := range all {
		m.becomes(t, "it goes on", func(s plan.Status) bool { return s.Unreachable == "" })
	}
	all[1].stop() // what comes back is the other one's work, which has lived through the outage
	if err := c.admin.Delete(t.Context(), c.configMap(t, "default", "outlives")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what was deleted comes back", time.Minute, func() error {
		if c.configMap(t, "default", "outlives") == nil {
			return errors.New("it is not there")
		}
		return nil
	})
}
