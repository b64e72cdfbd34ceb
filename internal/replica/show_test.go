package replica_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/replica"
)

func ExampleCluster_Show() {
	c, err := replica.Load(replica.Source{Name: "/etc/quorate/cluster.yaml", Data: []byte(`
apiVersion: quorate.dev/v1alpha1
kind: Cluster
name: demo
endpoint: {externalIP: 203.0.113.10}
record: {url: "gs://record?endpoint=http://192.0.2.1"}
seal: {key: base64key://c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAxMjM=}
`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	shown, err := c.Show()
	fmt.Print(string(shown), err)
	// Output:
	// apiVersion: quorate.dev/v1alpha1
	// kind: Cluster
	// name: demo
	// endpoint:
	//     externalIP: 203.0.113.10
	//     port: 443
	// record:
	//     url: gs://record?endpoint=http://192.0.2.1
	// seal:
	//     key: base64key://REDACTED
	// replicas: 3
	// network:
	//     serviceCIDRs:
	//         - 10.96.0.0/12
	//     podCIDR: 10.244.0.0/16
	//     dnsDomain: cluster.local
	// etcd:
	//     dataDir: /var/lib/quorate
	//     quotaBytes: 8589934592
	//     heartbeat: 100ms
	//     election: 1s
	//     catchUpEntries: 75000
	//     snapshots:
	//         interval: 1h0m0s
	//         hourly: 168h0m0s
	//         daily: 2160h0m0s
	// components:
	//     cluster-autoscaler:
	//         enabled: false
	//         binary: /usr/local/bin/cluster-autoscaler
	//         elect: self
	//     kube-apiserver:
	//         enabled: true
	//         binary: /usr/local/bin/kube-apiserver
	//         elect: self
	//     kube-controller-manager:
	//         enabled: true
	//         binary: /usr/local/bin/kube-controller-manager
	//         elect: self
	//     kube-scheduler:
	//         enabled: true
	//         binary: /usr/local/bin/kube-scheduler
	//         elect: self
	// kubelet:
	//     watch: true
	//     unit: kubelet.service
	//     runtimeUnit: containerd.service
	//     runtimeSocket: /run/containerd/containerd.sock
	//     healthPort: 10248
	//     answerWithin: 10s
	//     misses: 3
	//     startWithin: 5m0s
	// election: fast
	// survivors: restore
	// encryptionAtRest: true
	// <nil>
}

// printed is a Cluster in every way in which one could get into a log or onto a screen.
func printed(t *testing.T, c *replica.Cluster) []string {
	t.Helper()
	shown, err := c.Show()
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(*c)
	if err != nil {
		t.Fatal(err)
	}
	return []string{string(shown), string(asJSON), string(asYAML),
		fmt.Sprintf("%v", c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprint(c.Validate())}
}

func TestPrintingNeverShowsTheSealKey(t *testing.T) {
	c := valid()
	for _, key := range []string{"base64key://" + secret, secret, "bas64key://" + secret} {
		c.Seal.Key = key
		for _, s := range printed(t, c) {
			if strings.Contains(s, secret[:20]) {
				t.Errorf("the seal key is in %s", s)
			}
		}
	}
	if c.Seal.Key != "bas64key://"+secret {
		t.Error("showing the document changed it")
	}
	const name = "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"
	c.Seal.Key = name
	for _, s := range printed(t, c)[:3] {
		if !strings.Contains(s, name) {
			t.Errorf("the key's name, which is no secret, is not in %s", s)
		}
	}
}

// A component's environment is where a token is put that its program reads.
func TestPrintingNeverShowsTheValuesOfAnEnvironment(t *testing.T) {
	c := valid()
	c.Components["ccm"] = replica.Component{Binary: "/usr/bin/ccm", Enabled: new(true), Elect: "self",
		Probe: &replica.Probe{URL: "https://127.0.0.1:10258/healthz"}, Env: replica.Env{"TOKEN": "hunter2"}}
	for i, s := range printed(t, c) {
		if strings.Contains(s, "hunter2") {
			t.Errorf("the token is in %s", s)
		}
		if i < 6 && !strings.Contains(s, "TOKEN") {
			t.Errorf("that there is one is not in %s", s)
		}
	}
	if c.Components["ccm"].Env["TOKEN"] != "hunter2" {
		t.Error("showing the document changed it")
	}
}

func TestParsingNeverShowsTheSealKey(t *testing.T) {
	for _, doc := range []string{"seal: base64key://" + secret, "seal: {key: [base64key://" + secret + "]}",
		"seal:\n  key: !!binary base64key://" + secret, "seal: [" + secret + "]",
		"seal: {" + secret + ": x}", "seal: {key: {" + secret + ": x}}", "name: [base64key://" + secret + "]",
		"base64key://" + secret + ": 1", "seal: {key: &a " + secret + "}",
		"seal: " + secret, "seal: {key: {a: " + secret + "}}", "seal: {other: " + secret + "}"} {
		_, err := replica.Parse("a.yaml", []byte(head+doc+"\n"))
		if err != nil && strings.Contains(err.Error(), secret[:20]) {
			t.Errorf("the seal key is in %v", err)
		}
	}
}

// What cannot be the key itself is named.
func TestParsingNamesTheShapeOfASealThatIsNone(t *testing.T) {
	for doc, want := range map[string]string{"seal: [x]": "found a list", "seal: {key: {a: x}}": "found a mapping",
		"seal: x": "found a value that is not shown"} {
		_, err := replica.Parse("a.yaml", []byte(head+doc+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", doc, err, want)
		}
	}
}

func TestShowingFillsTheDefaultsInAndChangesNothing(t *testing.T) {
	c := &replica.Cluster{Name: "demo"}
	shown, err := c.Show()
	if err != nil || !strings.Contains(string(shown), "replicas: 3\n") || c.Replicas != 0 {
		t.Errorf("%v, %d replicas, shown as\n%s", err, c.Replicas, shown)
	}
}

func schemaOf(t *testing.T) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal([]byte(replica.Schema()), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSchemaTakesTheExampleAndRefusesOthers(t *testing.T) {
	schema := schemaOf(t)
	var doc map[string]any
	if err := yaml.NewDecoder(bytes.NewReader(readExample(t))).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	access, err := os.ReadFile("testdata/access.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(access, &doc); err != nil { // beside what is there already
		t.Fatal(err)
	}
	if faults := against(schema, schema, doc, ""); len(faults) > 0 || doc["jwt"] == nil || doc["record"] == nil {
		t.Errorf("the example does not fit the schema: %q", faults)
	}
	for field, value := range map[string]any{
		"nam": "x", "name": 3.5, "replicas": 8, "election": "quick", "etcd": map[string]any{"heartbeat": "100"},
		"components": map[string]any{"x": map[string]any{"bin": "/x"}}, "kind": "Pod", "record": map[string]any{},
		"jwt":           []any{map[string]any{"issuer": map[string]any{"url": "https://a"}}},
		"authorization": map[string]any{"webhooks": []any{map[string]any{"name": "a"}}},
	} {
		before, had := doc[field]
		doc[field] = value
		if len(against(schema, schema, doc, "")) == 0 {
			t.Errorf("the schema takes %s: %v", field, value)
		}
		if doc[field] = before; !had {
			delete(doc, field)
		}
	}
}

// Every field of the type is in the schema, with the words of its comment.
func TestSchemaDescribesEveryField(t *testing.T) {
	schema := schemaOf(t)
	var walk func(rt reflect.Type, s map[string]any)
	walk = func(rt reflect.Type, s map[string]any) {
		s = resolve(schema, s)
		if rt.Kind() != reflect.Struct {
			return
		}
		properties, _ := s["properties"].(map[string]any)
		if rt.NumField() != len(properties) || s["additionalProperties"] != false {
			t.Errorf("%s has %d fields, the schema %d, additional: %v", rt, rt.NumField(), len(properties),
				s["additionalProperties"])
		}
		for f := range rt.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if json, _, _ := strings.Cut(f.Tag.Get("json"), ","); json != name {
				t.Errorf("%s.%s is %q in YAML and %q in JSON", rt, f.Name, name, json)
			}
			p, _ := properties[name].(map[string]any)
			if d, _ := p["description"].(string); d == "" {
				t.Errorf("%s.%s has no description", rt, name)
			}
			ft := f.Type
			for ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			switch ft.Kind() {
			case reflect.Map:
				ft, p = ft.Elem(), resolve(schema, p)["additionalProperties"].(map[string]any)
			case reflect.Slice:
				ft, p = ft.Elem(), resolve(schema, p)["items"].(map[string]any)
			}
			walk(ft, p)
		}
	}
	walk(reflect.TypeFor[replica.Cluster](), schema)
}

func resolve(root, s map[string]any) map[string]any {
	ref, ok := s["$ref"].(string)
	if !ok {
		return s
	}
	return root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
}

// against checks a value by the keywords that our schema uses; any other keyword is a fault, so that none is forgotten.
func against(root, s map[string]any, v any, at string) (faults []string) {
	s = resolve(root, s)
	for keyword, arg := range s {
		switch keyword {
		case "$schema", "$defs", "description":
		case "type":
			if !hasType(v, arg.(string)) {
				faults = append(faults, fmt.Sprintf("%s: %v is no %v", at, v, arg))
			}
		case "required":
			for _, name := range arg.([]any) {
				if _, ok := v.(map[string]any)[name.(string)]; !ok {
					faults = append(faults, at+": lacks "+name.(string))
				}
			}
		case "properties", "additionalProperties":
			m, _ := v.(map[string]any)
			for name, value := range m {
				properties, _ := s["properties"].(map[string]any)
				p, known := properties[name].(map[string]any)
				if keyword == "additionalProperties" {
					if known {
						continue
					}
					if p, known = arg.(map[string]any); !known {
						faults = append(faults, at+": unknown "+name)
						continue
					}
				} else if !known {
					continue
				}
				faults = append(faults, against(root, p, value, at+"."+name)...)
			}
		case "items":
			list, _ := v.([]any)
			for _, item := range list {
				faults = append(faults, against(root, arg.(map[string]any), item, at+"[]")...)
			}
		case "enum":
			if !slices.Contains(arg.([]any), v) {
				faults = append(faults, fmt.Sprintf("%s: %v is none of %v", at, v, arg))
			}
		case "pattern":
			if text, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
				faults = append(faults, fmt.Sprintf("%s: %q does not match", at, text))
			}
		case "minimum", "maximum":
			if n, ok := v.(int); ok && (keyword == "minimum" && float64(n) < arg.(float64) || keyword == "maximum" &&
				float64(n) > arg.(float64)) {
				faults = append(faults, fmt.Sprintf("%s: %d is beyond %v", at, n, arg))
			}
		default:
			faults = append(faults, "the schema uses a keyword that this test does not know: "+keyword)
		}
	}
	return faults
}

func hasType(v any, name string) bool {
	switch v.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case int:
		return name == "integer"
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	}
	return false
}
