package buckets

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/internal/localgce/answer"
)

// Granted says whether the sender of a request has a permission on an object; an empty object is the bucket itself.
type Granted func(r *http.Request, bucket, object, permission string) bool

// Enforce has requests refused that take a permission which granted denies. It must be called before the first request.
func (b *Server) Enforce(granted Granted) { b.granted = granted }

// taking is what a request takes of IAM.
type taking struct {
	bucket, object string
	permissions    []string
}

// refuses answers a request that its sender has not the permissions for, as Cloud Storage does.
func (b *Server) refuses(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if b.granted == nil {
		return false
	}
	t := b.takes(r, body)
	for _, permission := range t.permissions {
		if !b.granted(r, t.bucket, t.object, permission) {
			on := "Google Cloud Storage object"
			if t.object == "" {
				on = "Google Cloud Storage bucket"
			}
			answer.Error(w, http.StatusForbidden, "forbidden", "The sender does not have "+permission+" access to the "+
				on+". Permission '"+permission+"' denied on resource (or it may not exist).")
			return true
		}
	}
	return false
}

// takes is what a request takes. Who overwrites an object has to be allowed to delete it; who writes only where there
// is none, has not. Another request than those that quorate sends takes a permission that nobody has.
func (b *Server) takes(r *http.Request, body []byte) (t taking) {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/upload"), "/download")
	path, found := strings.CutPrefix(path, "/storage/v1/b/")
	var rest string
	t.bucket, rest, _ = strings.Cut(path, "/")
	kind, object, named := strings.Cut(rest, "/")
	switch {
	case !found || kind != "o" && rest != "" && rest != "iam":
		t.permissions = []string{"localgce.requests.unknown"}
	case rest == "":
		t.permissions = []string{"storage.buckets.get"}
	case rest == "iam":
		t.permissions = []string{"storage.buckets.getIamPolicy"}
	case r.Method == http.MethodPost && !named:
		t.object = uploaded(r, body)
		t.permissions = []string{"storage.objects.create"}
		if r.URL.Query().Get("ifGenerationMatch") != "0" && b.exists(t.bucket, t.object) {
			t.permissions = append(t.permissions, "storage.objects.delete")
		}
	case r.Method == http.MethodPut && r.URL.Query().Has("upload_id"): // a part of an upload that was allowed to begin
	case !named:
		t.permissions = []string{"storage.objects.list"}
	default:
		t.object = object
		t.permissions = []string{map[string]string{http.MethodGet: "storage.objects.get",
			http.MethodHead: "storage.objects.get", http.MethodDelete: "storage.objects.delete"}[r.Method]}
		if t.permissions[0] == "" {
			t.permissions[0] = "storage.objects.update"
		}
	}
	return t
}

// uploaded is the name of the object that an upload begins to make: a parameter, or in the first part of the body.
func uploaded(r *http.Request, body []byte) string {
	if name := r.URL.Query().Get("name"); name != "" {
		return name
	}
	var first io.Reader = bytes.NewReader(body)
	if kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil &&
		strings.HasPrefix(kind, "multipart/") {
		part, err := multipart.NewReader(first, parameters["boundary"]).NextPart()
		if err != nil {
			return ""
		}
		first = part
	}
	var object struct{ Name string }
	if json.NewDecoder(first).Decode(&object) != nil {
		return ""
	}
	return object.Name
}

func (b *Server) exists(bucket, object string) bool {
	_, err := os.Lstat(filepath.Join(b.folder, bucket, object))
	return err == nil
}
