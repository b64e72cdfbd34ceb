package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Where the inventory is: one ConfigMap of the cluster. Its annotations can be read without its lines.
const (
	InventoryNamespace = "kube-system"
	InventoryName      = "quorate-addons"

	VersionAnnotation  = "addons.quorate.dev/version"
	DigestAnnotation   = "addons.quorate.dev/digest"
	CompleteAnnotation = "addons.quorate.dev/complete"

	objectsKey = "objects"
)

// MostObjects is how many objects a set may have: the lines of 5000 are half of what a ConfigMap can hold, and those of
// the set before may stand among them.
const MostObjects = 5000

// Inventory is what the managers have made, and by the word of which set.
type Inventory struct {
	// Version is of the newest set that has written; empty: none has, or a person has taken it out.
	Version Version
	Digest  string
	// Complete says that the set had no faults.
	Complete bool
	// Objects are sorted. Each is written here before it is made, so nothing that was made is ever missing.
	Objects []ID
}

// ParseInventory reads the ConfigMap's annotations and data. What cannot be read is an error: a manager that went on
// without it could be older than the set that wrote it.
func ParseInventory(annotations, data map[string]string) (Inventory, error) {
	inv := Inventory{Digest: annotations[DigestAnnotation], Complete: annotations[CompleteAnnotation] == "true"}
	if text := annotations[VersionAnnotation]; text != "" {
		v, err := ParseVersion(text)
		if err != nil {
			return Inventory{}, fmt.Errorf("annotation %s: %w", VersionAnnotation, err)
		}
		inv.Version = v
	}
	for line := range strings.Lines(data[objectsKey]) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 4 {
			return Inventory{}, fmt.Errorf("data %s: found %.80q; allowed: APIVERSION KIND NAMESPACE NAME, with - for "+
				"no namespace", objectsKey, line)
		}
		id := ID{APIVersion: f[0], Kind: f[1], Namespace: f[2], Name: f[3]}
		if id.Namespace == "-" {
			id.Namespace = ""
		}
		inv.Objects = append(inv.Objects, id)
	}
	inv.Objects = sorted(inv.Objects)
	return inv, nil
}

// Encode is the ConfigMap's annotations and data.
func (i Inventory) Encode() (annotations, data map[string]string) {
	var lines strings.Builder
	for _, id := range i.Objects {
		namespace := id.Namespace
		if namespace == "" {
			namespace = "-"
		}
		fmt.Fprintf(&lines, "%s %s %s %s\n", id.APIVersion, id.Kind, namespace, id.Name)
	}
	annotations = map[string]string{VersionAnnotation: string(i.Version), DigestAnnotation: i.Digest,
		CompleteAnnotation: fmt.Sprint(i.Complete)}
	return annotations, map[string]string{objectsKey: lines.String()}
}

// Claim is the inventory of a set that may write, with what the set is about to make.
func (i Inventory) Claim(s Set, about []ID) Inventory {
	return Inventory{Version: s.Version, Digest: s.Digest, Complete: s.Complete(),
		Objects: sorted(slices.Concat(i.Objects, about))}
}

// Without is the inventory without some objects.
func (i Inventory) Without(gone []ID) Inventory {
	drop := keys(gone)
	i.Objects = slices.DeleteFunc(slices.Clone(i.Objects), func(id ID) bool { return drop[id.Key()] })
	return i
}

// Same says that two inventories say the same.
func (i Inventory) Same(other Inventory) bool {
	return i.Version == other.Version && i.Digest == other.Digest && i.Complete == other.Complete &&
		slices.Equal(i.Objects, other.Objects)
}

// sorted has each object once, in the version of its API that came last.
func sorted(ids []ID) []ID {
	last := make(map[Key]ID, len(ids))
	for _, id := range ids {
		last[id.Key()] = id
	}
	out := make([]ID, 0, len(last))
	for _, id := range last {
		out = append(out, id)
	}
	slices.SortFunc(out, ID.Compare)
	return out
}

func keys(ids []ID) map[Key]bool {
	out := make(map[Key]bool, len(ids))
	for _, id := range ids {
		out[id.Key()] = true
	}
	return out
}
