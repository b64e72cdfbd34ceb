package compute

import (
	"net/http"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// listSettings answers a list of the project or of a region, which also has disks.
func (c *Server) listSettings(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("kind") == "disks" {
		c.list(w, r)
		return
	}
	if !c.checkProject(w, r) {
		return
	}
	list, item := c.conf.Settings.Listed(r.PathValue("kind"))
	if item == "" {
		answer.Error(w, http.StatusNotFound, "notFound", "localgce does not serve "+r.PathValue("kind"))
		return
	}
	answer.JSON(w, map[string]any{"kind": "compute#" + item + "List", "id": r.URL.Path[1:], "items": list, "selfLink": self(
		r)})
}

func (c *Server) getProject(w http.ResponseWriter, r *http.Request) {
	if c.checkProject(w, r) {
		answer.JSON(w, answer.With(map[string]any{"kind": "compute#project", "name": instance.ProjectID, "selfLink": self(r)},
			c.conf.Settings.Project))
	}
}
