package addons

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/addons/plan"
)

// difference is how an object differs from its manifest. Values of Secrets are masked in it.
type difference struct {
	same bool
	// before is nil where there is no such object.
	before, after *unstructured.Unstructured
}

// compare applies a manifest as a dry run, and compares what comes of it with what is there.
func (c *cluster) compare(ctx context.Context, manifest *unstructured.Unstructured) (difference, error) {
	entry, before, after, err := c.apply.Diff(ctx, manifest.DeepCopy(), ssa.DefaultDiffOptions())
	switch {
	case err != nil:
		return difference{}, err
	case entry.Action == ssa.UnchangedAction:
		return difference{same: true}, nil
	case before != nil && before.GetUID() == "":
		return difference{}, errors.New("it is there, and could not be read: it is compared again")
	}
	return difference{before: before, after: after}, nil
}

// fields are the fields that differ.
func (d difference) fields() (out []string) {
	if d.before == nil {
		return []string{plan.WholeObject}
	}
	for _, c := range plan.Changes(d.before.Object, d.after.Object) {
		out = append(out, c.Path)
	}
	return out
}

// ownerOf is who has last set one of an object's fields, of those who name themselves.
func ownerOf(u *unstructured.Unstructured, fields []string) (name string) {
	if u == nil {
		return ""
	}
	var last time.Time
	for _, entry := range u.GetManagedFields() {
		if entry.Manager == plan.FieldOwner || entry.FieldsV1 == nil || entry.Time == nil ||
			entry.Time.Time.Before(last) {
			continue
		}
		var owned map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
			continue
		}
		if slices.ContainsFunc(fields, func(field string) bool { return ownsField(owned, field) }) {
			name, last = entry.Manager, entry.Time.Time
		}
	}
	return name
}

// ownsField says whether a set of owned fields has one, by its path. It ends at a list: its items are named otherwise.
func ownsField(owned map[string]any, field string) bool {
	for key, below := range owned {
		name, isField := strings.CutPrefix(key, "f:")
		rest, fits := strings.CutPrefix(field, name)
		if !isField || !fits {
			continue
		}
		if rest == "" || rest[0] == '[' {
			return true
		}
		if inner, ok := below.(map[string]any); ok && rest[0] == '.' &&
			(len(inner) == 0 || ownsField(inner, rest[1:])) {
			return true
		}
	}
	return false
}

// write applies a manifest. It changes only the very object that was compared, and makes one only where there was none:
// one that somebody has made or deleted meanwhile is an error.
func (c *cluster) write(ctx context.Context, manifest, before *unstructured.Unstructured) error {
	options := []client.ApplyOption{client.FieldOwner(plan.FieldOwner)}
	manifest = manifest.DeepCopy()
	if before != nil {
		manifest.SetUID(before.GetUID())
		options = append(options, client.ForceOwnership)
	}
	return c.writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), options...)
}
