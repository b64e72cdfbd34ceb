package buckets

import (
	"net/http"
	"strings"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// serveSettings answers what a bucket says of itself, where it exists.
func (b *Server) serveSettings(w http.ResponseWriter, r *http.Request) bool {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/storage/v1/b/"), "/")
	if r.Method != http.MethodGet || name == r.URL.Path || !b.has(name) {
		return false
	}
	switch {
	case b.settings.Refuses(w, "storage.googleapis.com"):
	case rest == "":
		answer.JSON(w, answer.With(map[string]any{"kind": "storage#bucket", "id": name, "name": name,
			"projectNumber": answer.Decimal(instance.ProjectNumber)}, b.settings.Bucket))
	case rest == "iam":
		answer.JSON(w, map[string]any{"kind": "storage#policy", "resourceId": "projects/_/buckets/" + name, "version": 3,
			"bindings": b.settings.BucketPolicy})
	case rest == "iam/testPermissions":
		answer.JSON(w, map[string]any{"kind": "storage#testIamPermissionsResponse",
			"permissions": b.settings.Held(r.URL.Query()["permissions"])})
	default:
		return false
	}
	return true
}

func (b *Server) has(name string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	_, ok := b.served[name]
	return ok
}
