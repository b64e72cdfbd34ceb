package addons

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quorate/quorate/addons/plan"
)

// ownCPU is the processor time of this process.
func ownCPU(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func names(s set) (out []string) {
	for _, o := range s.Objects {
		out = append(out, o.String()+" of "+o.Source)
	}
	return out
}

func TestReadSet(t *testing.T) {
	cm := configMapYAML("a", "x", "1")
	for name, c := range map[string]struct {
		files   map[string]string
		objects []string
		faults  []string // parts of each
	}{
		"files and folders of files": {map[string]string{"version": "1", "x.yaml": cm,
			"deep/er/y.yml": configMapYAML("a", "y", "1"),
			"z.json":        `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"z"}}`,
			"README.md":     "no manifest", "old.yaml.bak": "nor this", ".hidden.yaml": "nor: [this",
			"empty.yaml": "# nothing\n---\n"},
			[]string{"ConfigMap z of z.json", "ConfigMap a/x of x.yaml", "ConfigMap a/y of deep/er/y.yml"}, nil},
		"documents and lists": {map[string]string{"version": "1", "x.yaml": cm + "---\n" + configMapYAML("a", "y",
			"1") +
			"---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: z}}\n"},
			[]string{"ConfigMap z of x.yaml", "ConfigMap a/x of x.yaml", "ConfigMap a/y of x.yaml"}, nil},
		"a kustomization, and nothing else of its folder": {map[string]string{"version": "1",
			"k/kustomization.yaml": "namePrefix: p-\nresources: [base, x.yaml]\n", "k/x.yaml": cm,
			"k/base/kustomization.yaml": "resources: [y.yaml]\n", "k/base/y.yaml": configMapYAML("a", "y", "1"),
			"k/unused.yaml": "bad: ["},
			[]string{"ConfigMap a/p-x of k/kustomization.yaml", "ConfigMap a/p-y of k/kustomization.yaml"}, nil},
		"no version": {map[string]string{"x.yaml": cm}, []string{"ConfigMap a/x of x.yaml"},
			[]string{"version: found no such file"}},
		"a bad version": {map[string]string{"version": "latest", "x.yaml": cm}, []string{"ConfigMap a/x of x.yaml"},
			[]string{`version: found "latest"`}},
		"nothing": {map[string]string{"version": "1"}, nil, []string{"the folder: found no object"}},
		"a comment alone": {map[string]string{"version": "1", "x.yaml": "# later\n"}, nil,
			[]string{"the folder: found no object"}},
		"a file that is no YAML keeps what stands before the fault": {map[string]string{"version": "1",
			"x.yaml": cm + "---\nbad: [", "y.yaml": configMapYAML("a", "y", "1")},
			[]string{"ConfigMap a/x of x.yaml", "ConfigMap a/y of y.yaml"}, []string{"x.yaml: document 2"}},
		"a key that stands twice": {map[string]string{"version": "1", "x.yaml": cm + "kind: Secret\n"}, nil,
			[]string{`x.yaml: document 1: found text that is no manifest: yaml: unmarshal errors:`}},
		"no kind": {map[string]string{"version": "1", "x.yaml": "apiVersion: v1\nmetadata: {name: x}\n"}, nil,
			[]string{"x.yaml: document 1: kind: found nothing"}},
		"no name": {map[string]string{"version": "1", "x.yaml": "apiVersion: v1\nkind: Secret\n"}, nil,
			[]string{`metadata.name: found ""`}},
		"an unknown mode": {map[string]string{"version": "1",
			"x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: x, labels: {addonmanager.kubernetes.io/mode: " +
				"Once}}\n"}, nil,
			[]string{`found "Once"; allowed: Reconcile, EnsureExists`}},
		"the manager's own mark": {map[string]string{"version": "1",
			"x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: x, labels: {addons.quorate.dev/origin: made}}\n"},
			nil,
			[]string{"found the label addons.quorate.dev/origin"}},
		"the inventory itself": {map[string]string{"version": "1", "x.yaml": configMapYAML("kube-system",
			"quorate-addons", "")}, nil,
			[]string{"is the inventory"}},
		// k3s#1369: two manifests of one object in two folders were applied in turn, for ever.
		"one object in two files is in the set neither way": {map[string]string{"version": "1", "a/x.yaml": cm,
			"b/x.yaml": cm,
			"c/x.yaml": cm, "y.yaml": configMapYAML("a", "y", "1")}, []string{"ConfigMap a/y of y.yaml"},
			[]string{"b/x.yaml: ConfigMap a/x is in a/x.yaml too", "c/x.yaml: ConfigMap a/x is in other files too"}},
		"a kustomization that fetches": {map[string]string{"version": "1",
			"k/kustomization.yaml": "resources: ['https://example.com/x.yaml']\n"}, nil,
			[]string{`resources[0]: found "https://example.com/x.yaml"; allowed: a file or folder`}},
		"a kustomization that clones": {map[string]string{"version": "1",
			"k/kustomization.yaml": "resources: ['github.com/org/repo//deploy?ref=v1']\n"}, nil,
			[]string{`resources[0]: found "github.com/org/repo//deploy?ref=v1"`}},
		"a generator that fetches": {map[string]string{"version": "1",
			"k/kustomization.yaml": "configMapGenerator: [{name: x, files: ['a=https://example.com/x']}]\n"}, nil,
			[]string{`configMapGenerator[0].files[0]: found "a=https://example.com/x"`}},
		"a generator whose text is a URL": {map[string]string{"version": "1",
			"k/kustomization.yaml": "generatorOptions: {disableNameSuffixHash: true}\n" +
				"configMapGenerator: [{name: x, literals: ['a=https://example.com/x']}]\n"},
			[]string{"ConfigMap x of k/kustomization.yaml"}, nil},
		"a kustomization that names a plugin": {map[string]string{"version": "1",
			"k/kustomization.yaml": "generators: [g.yaml]\n",
			"k/g.yaml":             "apiVersion: someteam.example.com/v1\nkind: Exec\nmetadata: {name: x}\n"}, nil,
			[]string{"k/kustomization.yaml: generators[0]: found Exec of someteam.example.com/v1; allowed, of " +
				"builtin: Ann"}},
		"what is built into kustomize": {map[string]string{"version": "1",
			"k/kustomization.yaml": "generators: [g.yaml]\nresources: [x.yaml]\ntransformers:\n- |-\n  apiVersion: " +
				"builtin\n  kind: PrefixTransformer\n  metadata: {name: p}\n  prefix: p-\n  fieldSpecs: [{path: " +
				"metadata/name}]\n",
			"k/x.yaml": cm, "k/g.yaml": `{"apiVersion": "builtin", "kind": "ConfigMapGenerator", "name": "g",
				"metadata": {"name": "g"}, "literals": ["a=https://example.com/x"],
				"options": {"disableNameSuffixHash": true}}`},
			[]string{"ConfigMap p-g of k/kustomization.yaml", "ConfigMap a/p-x of k/kustomization.yaml"}, nil},
		"a text of a URL that replaces another": {map[string]string{"version": "1",
			"k/kustomization.yaml": "resources: [x.yaml]\nreplacements:\n- sourceValue: https://example.com/x\n" +
				"  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.key]}]\n", "k/x.yaml": cm},
			[]string{"ConfigMap a/x of k/kustomization.yaml"}, nil},
		"one kustomization is refused, and the other is built": {map[string]string{"version": "1",
			"bad/kustomization.yaml":  "resources: ['https://example.com/x.yaml']\n",
			"good/kustomization.yaml": "resources: [x.yaml]\n", "good/x.yaml": cm},
			[]string{"ConfigMap a/x of good/kustomization.yaml"}, []string{"bad/kustomization.yaml: resources[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := readSet(readFiles(writeFolder(t, t.TempDir(), c.files)))
			if got := names(s); !slices.Equal(got, c.objects) {
				t.Errorf("the objects are %q; want %q", got, c.objects)
			}
			if len(s.Faults) != len(c.faults) {
				t.Fatalf("the faults are %q; want %q", s.Faults, c.faults)
			}
			for i, part := range c.faults {
				if !strings.Contains(s.Faults[i], part) {
					t.Errorf("the fault %q lacks %q", s.Faults[i], part)
				}
			}
		})
	}
}

// Of each way in which kustomize fetches or runs something, the entry is refused by name.
func TestWhatFetchesOrRunsIsRefused(t *testing.T) {
	generator := "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nname: g\n"
	for text, want := range map[string]string{
		"resources: ['HTTPS://example.com/x.yaml']":     `resources[0]: found "HTTPS://example.com/x.yaml"`,
		"resources: ['git::https://example.com/x.git']": "resources[0]: found",
		"resources: ['git@example.com:org/repo.git']":   "resources[0]: found",
		// and it is in the folder
		"resources: ['GitHub.com/org/broken.yaml']": "resources[0]: found",
		"bases: ['ssh://example.com/x']":            "resources[0]: found",
		"components: ['file:///etc/kubernetes']":    "components[0]: found",
		"resources: ['/etc/passwd']":                "resources[0]: found",
		"resources: ['../../etc/x.yaml']":           "resources[0]: found",
		"resources: [nested]": "resources[0]: " +
			"k/nested/kustomization.yaml: crds[0]: found",
		"crds: ['https://example.com/x']":                               "crds[0]: found",
		"configurations: ['https://example.com/x']":                     "configurations[0]: found",
		"openapi: {path: 'https://example.com/x'}":                      "openapi.path: found",
		"patches: [{path: 'HTTP://example.com/x'}]":                     "patches[0].path: found",
		"patchesJson6902: [{path: 'https://example.com/x'}]":            "patchesJson6902[0].path: found",
		"patchesStrategicMerge: ['https://example.com/x']":              "patchesStrategicMerge[0]: found",
		"replacements: [{path: 'https://example.com/x'}]":               "replacements[0].path: found",
		"configMapGenerator: [{name: x, files: ['a=HTTPS://e.com/x']}]": "configMapGenerator[0].files[0]: found",
		"secretGenerator: [{name: x, envs: ['https://e.com/x']}]":       "secretGenerator[0].envs[0]: found",
		"configMapGenerator: [{name: x, env: 'https://e.com/x'}]":       "configMapGenerator[0].envs[0]: found",
		"helmCharts: [{name: x, repo: 'https://e.com'}]":                "helmCharts: found a chart",
		"helmChartInflationGenerator: [{chartName: x}]":                 "helmCharts: found a chart",
		"generators: ['https://example.com/g']":                         "generators[0]: found",
		"generators: [configs]":                                         `generators[0]: found "configs"`,
		"generators: [g.json]": "generators[0]: ConfigMapGenerator: " +
			"files[0]: found",
		"transformers: [exec.yaml]": "transformers[0]: found Sed of " +
			"someteam.example.com/v1",
		"validators: [function.yaml]": "validators[0]: ConfigMapGenerator: found " +
			"the annotation",
		"generators: [chart.yaml]": "generators[0]: found " +
			"HelmChartInflationGenerator",
		"generators: [\"" + strings.ReplaceAll(generator, "\n", "\\n") +
			"envs: ['https://e.com/x']\"]": "envs[0]: found what",
	} {
		s := readSet(files{contents: map[string][]byte{"version": []byte("1"), "k/kustomization.yaml": []byte(text),
			"k/GitHub.com/org/broken.yaml": []byte("bad: ["),
			"k/nested/kustomization.yaml":  []byte("crds: ['https:/x']"),
			"k/configs/kustomization.yaml": []byte("resources: [x.yaml]"), "k/configs/x.yaml": []byte(generator),
			"k/g.json": []byte(`{"apiVersion": "builtin", "kind": "ConfigMapGenerator", "metadata": {"name": "g"},
				"files": ["https://e.com/x"]}`),
			"k/exec.yaml": []byte("apiVersion: someteam.example.com/v1\nkind: Sed\nmetadata: {name: x}\n"),
			"k/function.yaml": []byte("apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g, " +
				"annotations: {config.kubernetes.io/function: 'container: {image: example.com/x}'}}\n"),
			"k/chart.yaml": []byte("apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\n")}})
		if len(s.Faults) == 0 || !strings.HasPrefix(s.Faults[0], "k/kustomization.yaml: ") ||
			!strings.Contains(s.Faults[0], want) || len(s.Objects) > 0 ||
			strings.Count(s.Faults[0], "k/kustomization.yaml") > 1 {
			t.Errorf("%s: the faults are %q, the objects %q; want %q", text, s.Faults, names(s), want)
		}
	}
}

// Faults are in the status and in the log: no value of a Secret may be in them.
func TestNoFaultHoldsASecretsValue(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
	for text, want := range map[string]string{
		secret + "stringData: {pin: 4711081500}\n":                "stringData.pin: found a number; allowed: a string",
		secret + "stringData: 4711081500\n":                       "stringData: found a number; allowed: an object",
		"apiVersion: v1\nstringData: {pin: '4711081500'}\n":       "kind: found nothing",
		"apiVersion: v1\nkind: 4711081500\n":                      "kind: found a number",
		"4711081500\n":                                            "found a number; allowed: an object",
		"[{kind: Secret, stringData: {pin: '4711081500'}}]\n":     "found a list; allowed: an object",
		secret + "stringData: {pin: *4711081500}\n":               "found text that is no manifest",
		secret + "stringData: {pin: !!int x4711081500}\n":         "found",
		"kind: List\napiVersion: v1\nitems: ['4711081500']\n":     "document 1",
		"kind: List\napiVersion: v1\nitems: [{data: 4711081500}]": "apiVersion: found",
	} {
		s := readSet(files{contents: map[string][]byte{"version": []byte("1"), "x.yaml": []byte(text)}})
		if faults := strings.Join(s.Faults, "\n"); !strings.Contains(faults, want) ||
			strings.Contains(faults, "47110815") {
			t.Errorf("%q: the faults are %q; want %q", text, faults, want)
		}
	}
	for name, kustomization := range map[string]string{
		"a literal":  "secretGenerator: [{name: x, literals: ['4711081500']}]",
		"a resource": "resources: [x.yaml]",
	} {
		s := readSet(files{contents: map[string][]byte{"version": []byte("1"),
			"k/kustomization.yaml": []byte(kustomization),
			"k/env":                []byte("4711081500 x\n"),
			"k/x.yaml":             []byte(secret + "stringData: {pin: !!int x4711081500}\n")}})
		if faults := strings.Join(s.Faults, "\n"); len(s.Faults) == 0 || strings.Contains(faults, "47110815") {
			t.Errorf("%s: the faults are %q", name, faults)
		}
	}
}

func TestAFolderThatCannotBeReadHasAFault(t *testing.T) {
	for name, folder := range map[string]string{"missing": filepath.Join(t.TempDir(), "missing"),
		"a file": writeFolder(t, t.TempDir(), map[string]string{"x": ""}) + "/x"} {
		if s := readSet(readFiles(folder)); len(s.Faults) != 2 || !strings.Contains(s.Faults[0], "the folder: open") {
			t.Errorf("%s: %q", name, s.Faults)
		}
	}
	dir := writeFolder(t, t.TempDir(), map[string]string{"version": "1", "x.yaml": configMapYAML("a", "x", "1")})
	if err := os.Symlink("nowhere", filepath.Join(dir, "y.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "z.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := readSet(readFiles(dir)); len(s.Faults) != 2 || s.Complete() || len(s.Objects) != 1 {
		t.Errorf("a broken link and a pipe: %q, %q", s.Faults, names(s))
	}
	if err := os.Symlink(".", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if s := readSet(readFiles(dir)); !slices.ContainsFunc(s.Faults, func(f string) bool {
		return strings.Contains(f, "more than 12 folders")
	}) {
		t.Errorf("a loop of links: %q", s.Faults)
	}
}

// A manager that starts while the folder is written does not take the part for the whole.
func TestAFolderIsReadUntilItIsTheSameTwice(t *testing.T) {
	dir := writeFolder(t, t.TempDir(), map[string]string{"version": "1", "x.yaml": configMapYAML("a", "x", "1")})
	synctest.Test(t, func(t *testing.T) {
		m := &manager{cfg: Config{Folder: dir, Pace: Pace{Poll: defaultPoll}}}
		for name, after := range map[string]time.Duration{"y": 3 * time.Second, "z": 7 * time.Second} {
			time.AfterFunc(after, func() {
				writeFolder(t, dir, map[string]string{name + ".yaml": configMapYAML("a", name, "1")})
			})
		}
		f, err := m.settled(t.Context())
		if got := readSet(f); err != nil || len(got.Objects) != 3 {
			t.Errorf("%q, %v", names(got), err)
		}
	})
}

func TestTheDigestIsOfAllThatIsThere(t *testing.T) {
	dir := writeFolder(t, t.TempDir(), map[string]string{"version": "1", "x.yaml": "a: b"})
	digests := map[string]string{"before": readFiles(dir).digest}
	again := readFiles(dir).digest
	writeFolder(t, dir, map[string]string{"notes.txt": "read by nobody"})
	digests["with one more"] = readFiles(dir).digest
	writeFolder(t, dir, map[string]string{"x.yaml": "a: c"})
	digests["with one changed"] = readFiles(dir).digest
	seen := map[string]bool{}
	for name, d := range digests {
		if seen[d] || len(d) != 16 {
			t.Errorf("%s: %s", name, d)
		}
		seen[d] = true
	}
	if again != digests["before"] {
		t.Error("the same folder has two digests")
	}
}

func TestWhatOnlyTheClusterSetsIsTakenOut(t *testing.T) {
	objects, err := decode([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: a, uid: u, " +
		"resourceVersion: '7', creationTimestamp: null}\nstringData: {a: b}\ndata: {c: ZA==}\nstatus: {x: y}\n"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := describe(objects[0])
	if err != nil || o.Mode != plan.Reconcile || o.TakeOver {
		t.Fatalf("%+v, %v", o, err)
	}
	text, _ := objects[0].MarshalJSON()
	want := `{"apiVersion":"v1","data":{"a":"Yg==","c":"ZA=="},"kind":"Secret","metadata":{"name":"x","namespace":"a"}}`
	if got := strings.TrimSpace(string(text)); got != want {
		t.Errorf("%s", got)
	}
}

// What nobody has answered is no fault of an object: else each object would have its Event in each outage.
func TestAnOutageIsNoFaultOfAnObject(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("get: %w", &url.Error{Op: "Get", Err: syscall.ECONNREFUSED}): true,
		apierrors.NewServiceUnavailable("busy"):                                 false,
		errors.New("metadata.namespace: found none"):                            false,
	} {
		if got := unanswered(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}

func TestRulesOfAFolder(t *testing.T) {
	rules, faults := Rules(writeFolder(t, t.TempDir(), map[string]string{"version": "1",
		"crd.yaml": strings.NewReplacer("%[1]s", "sheep", "%[2]s", "Sheep").Replace(toolDefinition),
		"cr.yaml":  "apiVersion: example.com/v1\nkind: Sheep\nmetadata: {namespace: a, name: dolly}\n",
		"np.yaml":  "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {namespace: a, name: np}\n",
		"role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n---\n" +
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {namespace: a, name: b}\n" +
			"roleRef: {kind: ClusterRole, name: r}\n"}))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var got []string
	for _, r := range rules {
		if len(r.ResourceNames) > 0 && r.ResourceNames[0] != plan.InventoryName {
			got = append(got, r.Resources[0]+"."+r.APIGroups[0]+" "+r.ResourceNames[0]+" "+r.Verbs[0])
		}
	}
	want := []string{"customresourcedefinitions.apiextensions.k8s.io sheep.example.com create",
		"sheep.example.com dolly create",
		"networkpolicies.networking.k8s.io np create", "clusterroles.rbac.authorization.k8s.io r create",
		"rolebindings.rbac.authorization.k8s.io b create", "clusterroles.rbac.authorization.k8s.io r bind",
		"clusterroles.rbac.authorization.k8s.io r escalate"}
	if !slices.Equal(got, want) {
		t.Errorf("the rules are %q", got)
	}
}
