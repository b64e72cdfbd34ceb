package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Rule is a rule of a role, as RBAC has it.
type Rule struct {
	APIGroups     []string `json:"apiGroups"`
	Resources     []string `json:"resources"`
	ResourceNames []string `json:"resourceNames,omitempty"`
	Verbs         []string `json:"verbs"`
}

// Grant is what the role needs to know of one object.
type Grant struct {
	// Group and Resource are the object's, as RBAC names them.
	Group, Resource, Name string
	// Escalates: the object is a role, which grants what the manager itself may not do. Binds is the role that a
	// binding refers to: clusterroles/NAME or roles/NAME.
	Escalates bool
	Binds     string
}

// own is what every manager needs: its inventory, and to tell of objects that fail. create cannot be bound to a name.
func own() []Rule {
	return []Rule{
		{[]string{""}, []string{"configmaps"}, []string{InventoryName}, []string{"get", "update"}},
		{[]string{""}, []string{"configmaps"}, nil, []string{"create"}},
		{[]string{""}, []string{"events"}, nil, []string{"create"}},
	}
}

// writes are what is done to an object by its name. Server-side apply is patch, and create where there is none yet.
var writes = []string{"create", "delete", "get", "patch"}

// ReadByName is how many objects of a kind are read one by one. Where a set has more, the kind is listed: whoever may
// list reads all of that kind in the cluster.
const ReadByName = 10

// Rules are the least privilege that is enough for the objects: each by its name, and to list the kinds of which there
// are more than ReadByName. Secrets are never listed.
func Rules(grants []Grant) []Rule {
	type resource struct{ group, name string }
	names, special := map[resource][]string{}, map[resource]map[string][]string{}
	allow := func(r resource, verb, name string) {
		if special[r] == nil {
			special[r] = map[string][]string{}
		}
		special[r][verb] = append(special[r][verb], name)
	}
	for _, g := range grants {
		r := resource{g.Group, g.Resource}
		names[r] = append(names[r], g.Name)
		if g.Escalates {
			allow(r, "escalate", g.Name)
		}
		if kind, name, ok := strings.Cut(g.Binds, "/"); ok {
			allow(resource{g.Group, kind}, "bind", name)
		}
	}
	rules := own()
	add := func(r resource, names []string, verbs ...string) {
		slices.Sort(names)
		rules = append(rules, Rule{[]string{r.group}, []string{r.name}, slices.Compact(names), verbs})
	}
	byName := func(a, b resource) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.name, b.name)) }
	for _, r := range slices.SortedFunc(maps.Keys(names), byName) {
		add(r, names[r], writes...)
		if r != (resource{"", "secrets"}) && len(names[r]) > ReadByName {
			add(r, nil, "list")
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(special), byName) {
		for _, verb := range slices.Sorted(maps.Keys(special[r])) {
			add(r, special[r][verb], verb)
		}
	}
	return rules
}

// Lacking are the rules of wanted that granted does not cover.
func Lacking(granted, wanted []Rule) (out []Rule) {
	type right struct{ group, resource, name, verb string }
	have := map[right]bool{}
	each := func(r Rule, do func(right)) {
		for _, g := range r.APIGroups {
			for _, res := range r.Resources {
				for _, v := range r.Verbs {
					if len(r.ResourceNames) == 0 {
						do(right{g, res, "", v})
					}
					for _, n := range r.ResourceNames {
						do(right{g, res, n, v})
					}
				}
			}
		}
	}
	for _, r := range granted {
		each(r, func(x right) { have[x] = true })
	}
	for _, r := range wanted {
		covered := true
		each(r, func(x right) { covered = covered && (have[x] || have[right{x.group, x.resource, "", x.verb}]) })
		if !covered {
			out = append(out, r)
		}
	}
	return out
}
