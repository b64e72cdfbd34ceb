package addons

import (
	"context"
	"errors"

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
