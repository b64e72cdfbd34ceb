package addons

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quorate/quorate/addons/plan"
)

// observed is what the cluster has of one object of the set.
type observed struct {
	plan.Live
	object *unstructured.Unstructured
	// err is what Fault was made of. shared says that it is of the whole kind: then only the first object has it.
	err    error
	shared bool
}

// observe reads the objects of one stage. Of a few of a kind each is read by its name. More are listed, and what the
// list does not have is read by its name, since what lacks the mark may still be there. An object that cannot be read
// has its fault.
func (c *cluster) observe(ctx context.Context, objects []plan.Object) (map[plan.Key]observed, error) {
	kinds := map[schema.GroupVersionKind]map[plan.Key]bool{}
	for _, o := range objects {
		gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
		if kinds[gvk] == nil {
			kinds[gvk] = map[plan.Key]bool{}
		}
		kinds[gvk][o.Key()] = true
	}
	out := make(map[plan.Key]observed, len(objects))
	lists := map[schema.GroupVersionKind]listed{}
	for _, o := range objects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
		out[o.Key()] = c.observeOne(ctx, o.ID, gvk, kinds[gvk], lists)
	}
	return out, nil
}

// listed is the list of a kind, or why there is none.
type listed struct {
	objects map[plan.Key]*unstructured.Unstructured
	err     error
}

func (c *cluster) observeOne(ctx context.Context, id plan.ID, gvk schema.GroupVersionKind, wanted map[plan.Key]bool,
	lists map[schema.GroupVersionKind]listed) (seen observed) {
	fail := func(err error, shared bool) observed {
		return observed{Live: plan.Live{Fault: err.Error()}, err: err, shared: shared}
	}
	if err := c.scope(id); err != nil {
		return fail(err, false)
	}
	// Secrets are never listed: who may list reads all.
	if gvk.GroupKind() != (schema.GroupKind{Kind: "Secret"}) && len(wanted) > plan.ReadByName {
		list, asked := lists[gvk]
		if !asked {
			if list.objects, list.err = c.marked(ctx, gvk, wanted); apierrors.IsForbidden(list.err) {
				list = listed{} // a person has narrowed the role: each is read by its name
			}
			lists[gvk] = list
		}
		if list.err != nil {
			seen = fail(list.err, true)
			if asked {
				seen.err = nil
			}
			return seen
		}
		seen.object = list.objects[id.Key()]
	}
	if seen.object == nil {
		var err error
		if seen.object, err = c.get(ctx, id); err != nil {
			return fail(err, false)
		}
	}
	if seen.object != nil {
		var err error
		if seen.Live, err = liveOf(seen.object); err != nil {
			return fail(err, false)
		}
	}
	return seen
}

// unanswered says that a request has not come to an answer.
func unanswered(err error) bool {
	var silent *url.Error
	return errors.As(err, &silent)
}

// failed says that a request was not answered, or with the fault of a server: it may be no fault of the object that it
// was about.
func failed(err error) bool {
	return unanswered(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}

// outage says why a request that failed is no fault of its object: the inventory cannot be read either. Where it can,
// the fault is the object's, or its kind's: of a webhook that hangs, or of an extension apiserver. What failed after
// the pass had ended, which the outage of another object's request may have done, is nobody's fault.
func (c *cluster) outage(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !failed(err) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, _, probe := c.inventory(ctx); failed(probe) || ctx.Err() != nil {
		return fmt.Errorf("the apiserver fails: %w", err)
	}
	return nil
}

// probeTimeout bounds the question whether the apiserver fails, and the making of an Event: an apiserver that does not
// fail answers within milliseconds.
const probeTimeout = 10 * time.Second

// leftover reads an object of a former set. One that is being deleted is gone.
func (c *cluster) leftover(ctx context.Context, id plan.ID) (*unstructured.Unstructured, plan.Live, error) {
	u, err := c.get(ctx, id)
	if errors.Is(err, errUnserved) {
		return nil, plan.Live{Unserved: true}, nil
	}
	if err == nil && (u == nil || u.GetDeletionTimestamp() != nil) {
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
