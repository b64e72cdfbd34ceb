package compute

import (
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

func (c *Server) listImages(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) {
		return
	}
	items := []resource{}
	for _, i := range c.conf.Images {
		items = append(items, imageResource(i))
	}
	answer.JSON(w, map[string]any{"kind": "compute#imageList", "id": r.URL.Path[1:], "items": items, "selfLink": self(r)})
}

func (c *Server) getImage(w http.ResponseWriter, r *http.Request) {
	c.answerImage(w, r, instance.ImageLink(r.PathValue("name")))
}

func (c *Server) getImageFromFamily(w http.ResponseWriter, r *http.Request) {
	c.answerImage(w, r, instance.ImageLink("family/"+r.PathValue("name")))
}

func (c *Server) answerImage(w http.ResponseWriter, r *http.Request, link string) {
	if !c.checkProject(w, r) {
		return
	}
	if i, ok := findImage(link, c.conf.Images); ok {
		answer.JSON(w, imageResource(i))
		return
	}
	refuse(w, noImage(link))
}

// findImage is the image that a link names: by its name, or as the newest of its family that is not deprecated.
func findImage(link string, images []instance.Image) (instance.Image, bool) {
	name, ok := strings.CutPrefix(link, instance.ImageLink(""))
	family, isFamily := strings.CutPrefix(name, "family/")
	for _, i := range slices.Backward(images) {
		if ok && (i.Name == name || isFamily && i.Family == family && i.State == "") {
			return i, true
		}
	}
	return instance.Image{}, false
}

func noImage(link string) *refusal {
	return &refusal{http.StatusNotFound, "notFound", "The resource '" + link + "' was not found"}
}

// imageOf is the image that a boot disk can be made of. A deprecated one still can.
func imageOf(link string, images []instance.Image) (instance.Image, *refusal) {
	i, ok := findImage(link, images)
	switch {
	case !ok:
		return i, noImage(link)
	case i.State == "OBSOLETE":
		return i, invalid("disks[0].initializeParams.sourceImage", link, "The referenced image is obsolete.")
	}
	return i, nil
}

// nameID is the id of what has none of its own.
func nameID(name string) uint64 {
	id := fnv.New64()
	_, _ = id.Write([]byte(name)) // a hash takes all
	return id.Sum64()>>1 | 1
}

func imageResource(i instance.Image) resource {
	out := resource{"kind": "compute#image", "id": answer.Decimal(nameID(i.Name)), "name": i.Name,
		"selfLink": fullLink(instance.ImageLink(i.Name)), "status": "READY", "sourceType": "RAW", "diskSizeGb": "10",
		"creationTimestamp": timestamp(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))}
	if i.Family != "" {
		out["family"] = i.Family
	}
	if i.State != "" {
		out["deprecated"] = map[string]any{"state": i.State}
	}
	return out
}
