package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one field of an object that would change. Before or After is nil where the field is not there.
type Change struct {
	Path   string `json:"path"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// serverFields are set by the apiserver alone.
var serverFields = []string{"status", "metadata.creationTimestamp", "metadata.generation", "metadata.managedFields",
	"metadata.resourceVersion", "metadata.uid"}

// Changes are the fields in which two states of an object differ.
func Changes(before, after map[string]any) []Change { return changes("", before, after) }

func changes(at string, before, after any) (out []Change) {
	if slices.Contains(serverFields, at) {
		return nil
	}
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			keys := slices.Sorted(maps.Keys(b))
			for key := range a {
				if _, both := b[key]; !both {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			for _, key := range keys {
				out = append(out, changes(strings.TrimPrefix(at+"."+key, "."), b[key], a[key])...)
			}
			return out
		}
	case []any:
		if a, ok := after.([]any); ok && len(a) == len(b) {
			for i := range b {
				out = append(out, changes(fmt.Sprintf("%s[%d]", at, i), b[i], a[i])...)
			}
			return out
		}
	}
	if fmt.Sprint(before) == fmt.Sprint(after) {
		return nil
	}
	return []Change{{Path: at, Before: before, After: after}}
}
