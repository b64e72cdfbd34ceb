package addons

import (
	"context"
	"errors"
	"net/url"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quorate/quorate/addons/plan"
)

// observed is what the cluster has of one object of the set.
type observed struct {
	plan.Live
	object *unstructured.Unstructured
}

// observe reads the objects of one stage: a list for each kind, then each object that the list does not have by its
// name, since what lacks the mark may still be there. An object that cannot be read has its fault; an error says that
// nobody answers.
func (c *cluster) observe(ctx context.Context, objects []plan.Object) (map[plan.Key]observed, error) {
	out := make(map[plan.Key]observed, len(objects))
	lists := map[schema.GroupVersionKind]listed{}
	for _, o := range objects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		seen, err := c.observeOne(ctx, o.ID, lists)
		if unanswered(err) {
			return nil, err
		}
		if err == nil && seen.object != nil {
			seen.Live, err = liveOf(seen.object)
		}
		if err != nil {
			seen = observed{Live: plan.Live{Fault: err.Error()}}
		}
		out[o.Key()] = seen
	}
	return out, nil
}

// unanswered says that a request has not come to an answer: that is no fault of the object that it was about.
func unanswered(err error) bool {
	var silent *url.Error
	return errors.As(err, &silent)
}

// listed is the list of a kind, or why there is none.
type listed struct {
	objects map[plan.Key]*unstructured.Unstructured
	err     error
}

func (c *cluster) observeOne(ctx context.Context, id plan.ID,
	lists map[schema.GroupVersionKind]listed) (seen observed, err error) {
	if err := c.scope(id); err != nil {
		return seen, err
	}
	gvk := schema.FromAPIVersionAndKind(id.APIVersion, id.Kind)
	if gvk.GroupKind() != (schema.GroupKind{Kind: "Secret"}) { // they are never listed: who may list reads all
		list, asked := lists[gvk]
		if !asked {
			list.objects, list.err = c.marked(ctx, gvk)
			lists[gvk] = list
		}
		if list.err != nil {
			return seen, list.err
		}
		if seen.object = list.objects[id.Key()]; seen.object != nil {
			return seen, nil
		}
	}
	seen.object, err = c.get(ctx, id)
	return seen, err
}

// leftover reads an object of a former set. One that is being deleted is gone, and so is one whose kind is.
func (c *cluster) leftover(ctx context.Context, id plan.ID) (*unstructured.Unstructured, plan.Live, error) {
	u, err := c.get(ctx, id)
	if meta.IsNoMatchError(err) || err == nil && (u == nil || u.GetDeletionTimestamp() != nil) {
		return nil, plan.Live{}, nil
	}
	if err != nil {
		return nil, plan.Live{}, err
	}
	live, err := liveOf(u)
	return u, live, err
}

// unready is why an object does not do its work yet; empty: it does, or does not say.
func unready(u *unstructured.Unstructured) string {
	result, err := status.Compute(u)
	switch {
	case err != nil:
		return err.Error()
	case result.Status == status.CurrentStatus:
		return ""
	case result.Message == "":
		return result.Status.String()
	}
	return result.Status.String() + ": " + result.Message
}
