package addons

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/addons/plan"
)

// decode reads the manifests of a file: YAML documents, or JSON, which is YAML. A list is its items. Those before the
// first fault are returned with it.
func decode(content []byte) (out []*unstructured.Unstructured, err error) {
	documents := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("document %d: %w", n, err)
		}
		data, err := yaml.YAMLToJSONStrict(document) // a key that stands twice is a fault
		if err != nil {
			return out, fmt.Errorf("document %d: found text that is no manifest: %s", n,
				quoted.ReplaceAllString(err.Error(), "..."))
		}
		if string(bytes.TrimSpace(data)) == "null" {
			continue // a comment, or nothing
		}
		u := &unstructured.Unstructured{}
		if err := hasKind(data); err != nil {
			return out, fmt.Errorf("document %d: %w", n, err)
		}
		if err := u.UnmarshalJSON(data); err != nil {
			return out, fmt.Errorf("document %d: %w", n, err)
		}
		if !u.IsList() {
			out = append(out, u)
			continue
		}
		if err := u.EachListItem(func(item runtime.Object) error {
			out = append(out, item.(*unstructured.Unstructured))
			return nil
		}); err != nil {
			return out, fmt.Errorf("document %d: %w", n, err)
		}
	}
}

// quoted is what the YAML library quotes of a document in its errors. It may be a Secret's value, and faults are shown
// to people who may not read Secrets.
var quoted = regexp.MustCompile("`[^`]*`|'[^']{2,}'|map\\[.*\\]")

// hasKind checks what UnmarshalJSON refuses with a text that holds the whole document, a Secret's values included.
func hasKind(data []byte) error {
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		return errors.New("found text that is no JSON; allowed: an object with apiVersion and kind")
	}
	fields, ok := document.(map[string]any)
	if !ok {
		return fmt.Errorf("found %s; allowed: an object with apiVersion and kind", typeName(document))
	}
	if kind, ok := fields["kind"].(string); !ok || kind == "" {
		return fmt.Errorf("kind: found %s; allowed: one word", typeName(fields["kind"]))
	}
	return nil
}

// typeName names the type of a value of a manifest, without the value.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}

// describe checks a manifest, takes out of it what only the cluster can set, and says what it is.
func describe(u *unstructured.Unstructured) (plan.Object, error) {
	id := plan.ID{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	for _, f := range []struct{ name, value string }{{"apiVersion", id.APIVersion}, {"kind", id.Kind},
		{"metadata.name", id.Name}} {
		if f.value == "" || strings.ContainsAny(f.value, " \t\n") {
			return plan.Object{}, fmt.Errorf("%s: %s: found %q; allowed: one word", id, f.name, f.value)
		}
	}
	if id.Kind == "ConfigMap" && id.Namespace == plan.InventoryNamespace && id.Name == plan.InventoryName {
		return plan.Object{}, fmt.Errorf("%s is the inventory of the add-ons; allowed: another name", id)
	}
	if _, there := u.GetLabels()[plan.OriginLabel]; there {
		return plan.Object{}, fmt.Errorf("%s: found the label %s; allowed: none, since it is the manager's", id,
			plan.OriginLabel)
	}
	mode, err := plan.ParseMode(u.GetLabels()[plan.ModeLabel])
	if err != nil {
		return plan.Object{}, fmt.Errorf("%s: %w", id, err)
	}
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink",
		"uid"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	if id.Group() == "" && id.Kind == "Secret" {
		if err := encodeStrings(u); err != nil {
			return plan.Object{}, fmt.Errorf("%s: %w", id, err)
		}
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return plan.Object{}, fmt.Errorf("%s: %w", id, err)
	}
	return plan.Object{ID: id, Mode: mode, TakeOver: u.GetAnnotations()[plan.TakeOverAnnotation] == "true",
		Hash: hashOf(text), Asks: asks(u)}, nil
}

// asks are the namespaces of the services that the apiserver asks because of an object.
func asks(u *unstructured.Unstructured) (out []string) {
	add := func(from map[string]any, path ...string) {
		if namespace, _, _ := unstructured.NestedString(from, path...); namespace != "" &&
			!slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	switch u.GetKind() {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks") // what has another form the apiserver refuses
		for _, h := range hooks {
			if hook, ok := h.(map[string]any); ok {
				add(hook, "clientConfig", "service", "namespace")
			}
		}
	case "APIService":
		add(u.Object, "spec", "service", "namespace")
	}
	return out
}

// encodeStrings moves a Secret's stringData into data, as the apiserver does: it would own the fields of both.
func encodeStrings(u *unstructured.Unstructured) error {
	field := u.Object["stringData"]
	if field == nil {
		return nil
	}
	strs, ok := field.(map[string]any)
	if !ok {
		return fmt.Errorf("stringData: found %s; allowed: an object of strings", typeName(field))
	}
	for _, key := range slices.Sorted(maps.Keys(strs)) {
		value, ok := strs[key].(string)
		if !ok {
			return fmt.Errorf("stringData.%s: found %s; allowed: a string, in quotes where it looks like "+
				"something else",
				key, typeName(strs[key]))
		}
		if err := unstructured.SetNestedField(u.Object, base64.StdEncoding.EncodeToString([]byte(value)), "data",
			key); err != nil {
			return err
		}
	}
	unstructured.RemoveNestedField(u.Object, "stringData")
	return nil
}

// marked is a copy of a manifest with the manager's mark.
func marked(manifest *unstructured.Unstructured, origin string) *unstructured.Unstructured {
	u := manifest.DeepCopy()
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[plan.OriginLabel] = origin
	u.SetLabels(labels)
	return u
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// fingerprint is a fingerprint of all of a live object that a manifest can set.
func fingerprint(u *unstructured.Unstructured) (string, error) {
	bare := map[string]any{}
	for key, value := range u.Object {
		switch key {
		case "status":
		case "metadata":
			meta := map[string]any{}
			for key, value := range value.(map[string]any) {
				if key != "resourceVersion" && key != "managedFields" {
					meta[key] = value
				}
			}
			bare[key] = meta
		default:
			bare[key] = value
		}
	}
	text, err := json.Marshal(bare)
	return hashOf(text), err
}

// liveOf is what the plan needs to know of a live object.
func liveOf(u *unstructured.Unstructured) (plan.Live, error) {
	p, err := fingerprint(u)
	l := plan.Live{Exists: true, Origin: u.GetLabels()[plan.OriginLabel], Mode: u.GetLabels()[plan.ModeLabel], Print: p}
	for _, f := range u.GetManagedFields() {
		if f.Manager == plan.FieldOwner && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" {
			l.Owned = true
		}
	}
	return l, err
}
