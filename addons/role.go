package addons

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quorate/quorate/addons/plan"
)

// Rules are what the manager's role has to allow for the folder, and what of the folder cannot be used. They are found
// without the cluster: the resource of a kind that the folder does not define is guessed as kubectl's scaffolding does.
func Rules(folder string) ([]plan.Rule, []string) {
	s := readSet(readFiles(folder))
	return plan.Rules(s.grants()), s.Faults
}

// grants are what the role needs to know of each object.
func (s set) grants() (out []plan.Grant) {
	resources := map[schema.GroupKind]string{}
	for _, u := range s.manifests {
		if u == nil || u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group") // what is missing the apiserver refuses
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
		resources[schema.GroupKind{Group: group, Kind: kind}] = plural
	}
	for _, o := range s.Objects {
		gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
		resource := resources[gvk.GroupKind()]
		if resource == "" {
			guess, _ := meta.UnsafeGuessKindToResource(gvk)
			resource = guess.Resource
		}
		g := plan.Grant{Group: gvk.Group, Resource: resource, Name: o.Name}
		if gvk.Group == "rbac.authorization.k8s.io" {
			g.Escalates = strings.HasSuffix(gvk.Kind, "Role")
			kind, _, _ := unstructured.NestedString(s.manifests[o.Key()].Object, "roleRef", "kind")
			name, _, _ := unstructured.NestedString(s.manifests[o.Key()].Object, "roleRef", "name")
			if name != "" {
				g.Binds = strings.ToLower(kind) + "s/" + name
			}
		}
		out = append(out, g)
	}
	return out
}
