package replica_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/internal/replica"
)

const head = "apiVersion: quorate.dev/v1alpha1\nkind: Cluster\n"

func readExample(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestExampleDocumentIsValid(t *testing.T) {
	c, err := replica.Load(replica.Source{Name: "cluster.yaml", Data: readExample(t)})
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "prod-1" || c.Etcd.CatchUpEntries != 75000 || !*c.Components["cluster-autoscaler"].Enabled {
		t.Errorf("the example was read as %+v", c)
	}
}

// Each refusal must say the source, the line and the field, and what would be allowed.
func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ name, doc, want string }{
		{"an unknown field", head + "etcd:\n  hartbeat: 1s\n",
			"a.yaml: line 4: etcd.hartbeat: found an unknown field (did you mean etcd.heartbeat?); allowed: " +
				"catchUpEntries, dataDir, dataDisk, election, heartbeat, quotaBytes, snapshots"},
		{"a field of an earlier version", head + "restore: latest-snapshot\n",
			"a.yaml: line 3: restore: found a field of an earlier version; allowed: nothing: leave it out. A snapshot"},
		{"an unknown field in JSON", `{"apiVersion":"quorate.dev/v1alpha1","kind":"Cluster","nam":"x"}`,
			"a.yaml: line 1: nam: found an unknown field"},
		{"a field twice", head + "name: a\nname: b\n",
			"a.yaml: line 4: name: found the field a second time; allowed: once; it stands in line 3 already"},
		{"a component twice", head + "components:\n  x: {}\n  x: {}\n",
			"line 5: components.x: found the field a second time"},
		{"a second document", head + "---\n" + head, "a.yaml: line 3: found a second document; allowed: one"},
		{"text behind the document", head + "---\n}{\n",
			"a.yaml: line 4: found text behind the document that is not YAML (did not find"},
		{"rubbish behind the document", head + "---\n\t{",
			"a.yaml: line 4: found a tab in the indentation; allowed: spaces"},
		{"no document", "", "a.yaml: found an empty document; allowed: a Cluster document of quorate.dev/v1alpha1"},
		{"only a comment", "# soon\n", "a.yaml: found an empty document"},
		{"null", "null\n", "a.yaml: found an empty document"},
		{"a web page", "<!DOCTYPE html><html><body>sign in</body></html>", "allowed: a Cluster document"},
		{"a list", "- a\n", "found a list; allowed: a Cluster document"},
		{"a word", "hello\n", `a.yaml: found "hello"; allowed: a Cluster document`},
		{"broken YAML", head + "name: [\n", "a.yaml: line 3: found text that is neither YAML nor JSON (did not"},
		{"broken indentation", head + "etcd:\n  dataDir: /a\n dataDisk: b\n",
			"a.yaml: line 5: found text that is neither"},
		{"a name without a space behind its colon", head + "name:a\n",
			"a.yaml: line 3: found text that is neither YAML"},
		{"JSON without an end", `{"kind": "Cluster"`, "a.yaml: line 1: found text that is neither YAML nor JSON"},
		{"tabs", head + "etcd:\n\tdataDir: /a\n\tdataDisk: b\n",
			"a.yaml: line 4: found a tab in the indentation, and in that of another line; allowed: spaces"},
		{"broken JSON that is indented with tabs", "{\n\t\"kind\": [}",
			"a.yaml: line 2: found text that is neither YAML"},
		{"a byte of Latin-1", head + "# caf\xe9\n", "a.yaml: line 3: found the byte 0xe9, which is not UTF-8"},
		{"UTF-16", "\xff\xfek\x00", "a.yaml: line 1: found text in UTF-16; allowed: UTF-8"},
		{"a control character", head + "name: a\x00\n",
			"a.yaml: line 3: found the control character 0x00; allowed: text"},
		{"a field in other case", head + "network: {podCidr: x}\n", "unknown field (did you mean network.podCIDR?)"},
		{"two letters swapped", head + "nmae: x\n", "nmae: found an unknown field (did you mean name?)"},
		{"a field one level too high", head + "podCIDR: 10.0.0.0/8\n",
			"(did you mean network.podCIDR?)"},
		{"a field one level too low", head + "etcd: {survivors: wait}\n", "(did you mean survivors?)"},
		{"a component's field above it", head + "extraArgs: [--v=2]\n",
			"(did you mean components.NAME.extraArgs?)"},
		{"a field below the mapping comes first", head + "components: {x: {url: a}}\n",
			"(did you mean components.x.probe.url?)"},
		{"a field of a list's items", head + "audiences: [a]\n", "(did you mean jwt[N].issuer.audiences?)"},
		{"a field that is at several levels", head + "url: a\n",
			"(did you mean record.url or jwt[N].issuer.url or components.NAME.probe.url?)"},
		{"a field of no known name", head + "colour: red\n", "colour: found an unknown field; allowed: addons"},
		{"what stands below seal is not hinted at", head + "seal: {kye: a}\n",
			"not shown): found an unknown field; allowed"},
		{"another version", "apiVersion: quorate.dev/v2\nkind: Cluster\nfuture: 1\n",
			`a.yaml: line 1: apiVersion: found "quorate.dev/v2"; allowed: quorate.dev/v1alpha1`},
		{"no version", "kind: Cluster\n", "a.yaml: apiVersion: found nothing; allowed: quorate.dev/v1alpha1"},
		{"another kind", "apiVersion: quorate.dev/v1alpha1\nkind: Pod\n",
			`line 2: kind: found "Pod"; allowed: Cluster`},
		{"text for a number", head + "replicas: three\n", `line 3: replicas: found "three"; allowed: a whole number`},
		{"a number beyond its type", head + "etcd: {catchUpEntries: -1}\n",
			`etcd.catchUpEntries: found "-1"; allowed: a whole number`},
		{"a number with a fraction", head + "replicas: 2.9\n",
			`line 3: replicas: found "2.9"; allowed: a whole number in decimal digits`},
		{"a number with a fraction of nothing", head + "etcd: {quotaBytes: 4294967296.0}\n",
			`etcd.quotaBytes: found "4294967296.0"`},
		{"an octal number", head + "endpoint: {port: 0443}\n", `endpoint.port: found "0443"; allowed: a whole number`},
		{"an octal number of today", head + "endpoint: {port: 0o443}\n", `endpoint.port: found "0o443"`},
		{"a hexadecimal number", head + "endpoint: {port: 0x1bb}\n", `endpoint.port: found "0x1bb"`},
		{"a binary number", head + "replicas: 0b11\n", `replicas: found "0b11"`},
		{"a number with an exponent", head + "replicas: 0.3e1\n", `replicas: found "0.3e1"`},
		{"a number in groups", head + "endpoint: {port: 4_43}\n", `endpoint.port: found "4_43"`},
		{"a number with a plus", head + "replicas: +3\n", `replicas: found "+3"`},
		{"a number in quotes", head + "replicas: '3'\n", `replicas: found "3" in quotes; allowed: a whole number`},
		{"a truth of YAML 1.1", head + "encryptionAtRest: off\n",
			`encryptionAtRest: found "off"; allowed: true or false`},
		{"a truth in quotes", head + "encryptionAtRest: 'false'\n",
			`encryptionAtRest: found "false" in quotes; allowed: true or false`},
		{"a bare number for a duration", head + "etcd: {heartbeat: 100}\n",
			`etcd.heartbeat: found "100"; allowed: a duration such as`},
		{"text for a list", head + "network: {serviceCIDRs: 10.0.0.0/16}\n",
			"network.serviceCIDRs: found \"10.0.0.0/16\"; allowed: a list"},
		{"a list for a mapping", head + "etcd: [1]\n", "etcd: found a list; allowed: a mapping"},
		{"a mapping for text", head + "name: {a: b}\n", "name: found a mapping; allowed: text"},
		{"an explicit zero", head + "replicas: 0\n",
			`replicas: found "0"; allowed: a whole number above 0; leave the field out`},
		{"an explicit zero duration", head + "etcd: {election: 0s}\n", "etcd.election: found \"0s\""},
		{"an alias", head + "name: &n a\nelection: *n\n", "line 3: name: found an anchor or alias"},
		{"a merge key", head + "etcd: {<<: {dataDir: /a}}\n", `etcd: found "<<" as a name`},
		{"a document without end", head + "name: " + strings.Repeat("x", 300<<10), "allowed: at most 262144"},
		{"a control character in an unknown field", head + "\"a\\nb\": 1\n", `line 3: "a\nb": found an unknown field`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := replica.Parse("a.yaml", []byte(tc.doc))
			if err == nil {
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %s\nwant %s", err, tc.want)
			}
		})
	}
}

func TestTheLongestDocumentIsRead(t *testing.T) {
	doc := head + "# "
	doc += strings.Repeat("x", 262144-len(doc))
	if _, err := replica.Parse("a.yaml", []byte(doc)); err != nil {
		t.Error(err)
	}
	if _, err := replica.Parse("a.yaml", []byte(doc+"x")); err == nil ||
		!strings.Contains(err.Error(), "262145 bytes") {
		t.Error(err)
	}
}

// What is long is cut, so that a fault stays a line; where it is cut, it says how long it was.
func TestALongValueIsCut(t *testing.T) {
	for length, want := range map[int]string{80: `"` + strings.Repeat("x", 80) + `";`,
		81: `"` + strings.Repeat("x", 80) + `"… (81 bytes);`} {
		_, err := replica.Parse("a.yaml", []byte(head+"replicas: "+strings.Repeat("x", length)+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", length, err)
		}
	}
}

func TestParseNamesEveryFaultAtOnce(t *testing.T) {
	_, err := replica.Parse("a.yaml", []byte(head+"nam: x\nreplicas: many\netcd:\n  dir: /a\n"))
	var faults replica.Faults
	if !errors.As(err, &faults) || len(faults) != 3 {
		t.Fatalf("got %v, want three faults", err)
	}
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("three faults stand on %d lines", n+1)
	}
}

func TestJSONIsRead(t *testing.T) {
	c, err := replica.Parse("attribute",
		[]byte(`{"apiVersion":"quorate.dev/v1alpha1","kind":"Cluster","name":"a","etcd":{"heartbeat":"50ms"}}`))
	if err != nil || c.Name != "a" || c.Etcd.Heartbeat.String() != "50ms" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestLaterSourceWinsFieldByField(t *testing.T) {
	baked := string(readExample(t))
	over := head + `
replicas: 5
network: {serviceCIDRs: [10.97.0.0/16], podCIDR: null}
election: null
components:
  cloud-controller-manager: {env: {GOGC: "50"}}
  kube-scheduler: {extraArgs: [--v=3]}
`
	c, err := replica.Load(replica.Source{Name: "baked", Data: []byte(baked)}, replica.Source{Name: "attribute",
		Data: []byte(over)})
	if err != nil {
		t.Fatal(err)
	}
	want, err := replica.Load(replica.Source{Name: "baked", Data: []byte(baked)})
	if err != nil {
		t.Fatal(err)
	}
	want.Replicas = 5
	want.Network.ServiceCIDRs = []string{"10.97.0.0/16"}
	ccm := want.Components["cloud-controller-manager"]
	ccm.Env = map[string]string{"GOMAXPROCS": "2", "GOGC": "50"}
	want.Components["cloud-controller-manager"] = ccm
	scheduler := want.Components["kube-scheduler"]
	scheduler.ExtraArgs = []string{"--v=3"}
	want.Components["kube-scheduler"] = scheduler
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

// null says "the default again", in whichever source it stands.
func TestANullGivesWayToTheOtherSource(t *testing.T) {
	baked := string(readExample(t))
	load := func(first, second string) *replica.Cluster {
		t.Helper()
		c, err := replica.Load(replica.Source{Name: "baked", Data: []byte(first)}, replica.Source{Name: "attribute",
			Data: []byte(second)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(baked, head+"network: ~\netcd: {snapshots: ~}\ncomponents: {kube-apiserver: ~}\n")
	if c.Network.ServiceCIDRs[0] != "10.96.0.0/12" || c.Etcd.DataDisk != "master-pd" ||
		len(c.Components["kube-apiserver"].ExtraArgs) != 0 {
		t.Errorf("a null in the later one: %+v", c)
	}
	c = load(head+"network: ~\netcd: {snapshots: ~}\ncomponents: {kube-apiserver: ~}\n", baked)
	if c.Network.ServiceCIDRs[0] != "10.96.0.0/16" || c.Etcd.DataDisk != "master-pd" ||
		len(c.Components["kube-apiserver"].ExtraArgs) != 1 {
		t.Errorf("a null in the earlier one: %+v", c)
	}
}

func TestLoadNamesTheFaultsOfEverySource(t *testing.T) {
	_, err := replica.Load(replica.Source{Name: "baked", Data: []byte(head + "a: 1\n")},
		replica.Source{Name: "attribute", Data: []byte(head + "b: 1\n")})
	if err == nil || !strings.Contains(err.Error(), "baked: line 3: a:") ||
		!strings.Contains(err.Error(), "attribute: line 3: b:") {
		t.Errorf("got %v", err)
	}
	if _, err := replica.Load(); err == nil {
		t.Error("no source at all was taken")
	}
}

// What a fault leaves of a document is judged all the same, and what only follows from the fault is not named.
func TestLoadNamesTheFaultsOfAllSteps(t *testing.T) {
	further := func(c *replica.Cluster) error {
		return replica.Faults{{Field: "components.kube-apiserver.extraArgs[1]", Found: "b", Allowed: "c"},
			{Field: "replicas", Found: "12", Allowed: "1 to 7"}}
	}
	_, err := replica.LoadAnd(further, replica.Source{Name: "baked", Data: []byte(head + `nmae: x
endpoint: {externalIP: 10.240.0.100, port: many}
recrod: {url: "gs://bucket"}
`)}, replica.Source{Name: "attribute", Data: []byte(head + `replicas: 12
components:
  kube-apiserver:
    extraArgs:
    - one
    - two
  kube-sheduler: {enabled: true}
jwt:
- issuer: [1]
`)})
	var got []string
	for line := range strings.Lines(fmt.Sprint(err)) {
		place, _, _ := strings.Cut(line, ": found ")
		got = append(got, place)
	}
	if diff := cmp.Diff([]string{"baked: line 3: nmae", "baked: line 4: endpoint.port", "baked: line 5: recrod",
		"attribute: line 3: replicas", "attribute: line 7: components.kube-apiserver.extraArgs[0]",
		"attribute: line 8: components.kube-apiserver.extraArgs[1]",
		"attribute: line 8: components.kube-apiserver.extraArgs[1]", "attribute: line 9: components.kube-sheduler",
		"attribute: line 11: jwt[0].claimMappings.username", "attribute: line 11: jwt[0].issuer",
		"baked + attribute: seal.key",
	}, got); diff != "" {
		t.Errorf("%s\n%v", diff, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(string(readExample(f)))
	f.Add(head + "components: {x: {env: {A: null}, probe: {url: ''}}}\n")
	f.Add(head + "a: &a [*a]\n")
	f.Add(head + "? [a]\n: b\n")
	f.Add(head + "etcd: !!binary aGk=\n")
	f.Add("\xff\xfe\x00")
	f.Fuzz(func(t *testing.T, doc string) {
		c, err := replica.Parse("fuzz", []byte(doc))
		loaded, lerr := replica.Load(replica.Source{Name: "fuzz", Data: []byte(doc)})
		if (loaded == nil) == (lerr == nil) || lerr == nil && err != nil {
			t.Fatalf("parsed with %v, and loaded with %v: %+v", err, lerr, loaded)
		}
		if err != nil {
			if c != nil || err.Error() == "" {
				t.Fatalf("an error without words, or a document beside it: %+v, %q", c, err)
			}
			return
		}
		c.SetDefaults()
		if c.Validate() != nil {
			return
		}
		shown, err := c.Show()
		if err != nil {
			t.Fatalf("a valid document cannot be shown: %v", err)
		}
		again, err := replica.Parse("shown", shown)
		if err != nil {
			t.Fatalf("what is shown does not parse: %v\n%s", err, shown)
		}
		again.Seal = c.Seal
		for name, component := range again.Components {
			component.Env = c.Components[name].Env
			again.Components[name] = component
		}
		if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("what is shown reads as another document:\n%s", diff)
		}
	})
}

func TestNearAreAllThatAreEquallyNear(t *testing.T) {
	for _, c := range []struct{ word, words, want string }{
		{"mastr-b", "master-a master-b", "master-b"},
		{"master-z", "worker master-a master-b", "master-a master-b"},
		{"Master-A", "master-a master-b", "master-a"},
		{"ab", "ac", ""},            // half of it is another
		{"master", "masterful", ""}, // three letters are too many
	} {
		if got := strings.Join(replica.Near(c.word, strings.Fields(c.words)), " "); got != c.want {
			t.Errorf("%s among %s: %q, want %q", c.word, c.words, got, c.want)
		}
	}
}
