package gce

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/pattern"
)

// imageLink is an image, or a family of images, by its partial link.
var imageLink = pattern.Of(`^projects/([^/]+)/global/images/(family/)?([^/]+)$`)

// ResolveImage is the image that a partial link means now, projects/P/global/images/N: the link itself, or the newest
// of its family where it is projects/P/global/images/family/F. One that is missing, deprecated, obsolete or not ready
// is a *Refused for ImageUnusable. It needs compute.images.get, and compute.images.getFromFamily for a family.
func (c *Operator) ResolveImage(ctx context.Context, image string) (string, error) {
	m := imageLink().FindStringSubmatch(image)
	if m == nil {
		return "", fmt.Errorf("find image %q: allowed: projects/PROJECT/global/images/NAME or "+
			"projects/PROJECT/global/images/family/NAME", shorten(image))
	}
	project, family, name := m[1], m[2] != "", m[3]
	var found *compute.Image
	err := c.ask(ctx, "image "+image, func(ctx context.Context, api *compute.Service) (err error) {
		if family {
			found, err = api.Images.GetFromFamily(project, name).Context(ctx).Do()
		} else {
			found, err = api.Images.Get(project, name).Context(ctx).Do()
		}
		if err == nil {
			err = ofKind(found.Kind, "compute#image")
		}
		return err
	})
	unusable := func(err error) error { return &Refused{Reason: ImageUnusable, err: err} }
	var status *googleapi.Error
	switch {
	case errors.As(err, &status) && status.Code == http.StatusNotFound &&
		strings.Contains(status.Message, "/images/"):
		if family {
			return "", unusable(fmt.Errorf("there is no image of the family %s that is not deprecated (%w)", image,
				err))
		}
		return "", unusable(fmt.Errorf("there is no image %s (%w)", image, err))
	case err != nil:
		return "", explained(err)
	case found.Name == "" || !family && found.Name != name:
		return "", fmt.Errorf("ask %s for image %s: found an image %q", c.server(), image, found.Name)
	}
	if d := found.Deprecated; d != nil && d.State != "" && d.State != "ACTIVE" {
		text := fmt.Sprintf("image %s is %s", image, strings.ToLower(d.State))
		if d.Replacement != "" {
			text += "; it is replaced by " + partial(d.Replacement)
		}
		return "", unusable(errors.New(text))
	}
	if found.Status != "" && found.Status != "READY" {
		return "", unusable(fmt.Errorf("image %s is not ready: it is %s", image, found.Status))
	}
	return "projects/" + project + "/global/images/" + found.Name, nil
}

// partial is a resource's link from projects/ on.
func partial(link string) string {
	if at := strings.Index(link, "projects/"); at >= 0 {
		return link[at:]
	}
	return link
}
