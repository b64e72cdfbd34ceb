package buckets_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// Who may create and not delete writes where there is nothing, and overwrites nothing: 412 where it asked for absence,
// 403 where it did not.
func TestPermissionsAreThoseOfCloudStorage(t *testing.T) {
	t.Parallel()
	b := folder{t: t, folder: t.TempDir()}
	served, err := buckets.Open(b.folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string]bool{}
	served.Enforce(func(_ *http.Request, bucket, object, permission string) bool {
		if bucket != instance.BucketName || object != "" && !strings.HasPrefix(object, "demo/") {
			t.Errorf("asked for %s on %q of %q", permission, object, bucket)
		}
		return granted[permission]
	})
	b.url = serve(t, served)
	const at = "/storage/v1/b/" + instance.BucketName
	const upload = "/upload" + at + "/o?uploadType=media&name=demo%2Fx"
	const object = at + "/o/demo%2Fx"
	multipart := "--b\r\nContent-Type: application/json\r\n\r\n{\"name\":\"demo/x\"}\r\n--b\r\n" +
		"Content-Type: text/plain\r\n\r\ntwo\r\n--b--\r\n"
	for _, c := range []struct {
		grants, method, path, body string
		code                       int
		says                       string
	}{
		{"", "POST", upload, "one", 403, "storage.objects.create"},
		{"create", "POST", upload, "one", 200, "demo/x"},
		{"create", "POST", upload + "&ifGenerationMatch=0", "two", 412, ""},
		{"create", "POST", upload, "two", 403, "storage.objects.delete"},
		{"create", "POST", "/upload" + at + "/o?uploadType=multipart", multipart, 403, "storage.objects.delete"},
		{"", "GET", object + "?alt=media", "", 403, "storage.objects.get"},
		{"get", "GET", object + "?alt=media", "", 200, "one"},
		{"", "GET", "/download" + object + "?alt=media", "", 403, "storage.objects.get"},
		{"get", "GET", at + "/o", "", 403, "storage.objects.list"},
		{"list", "GET", at + "/o", "", 200, "demo/x"},
		{"list get", "GET", at, "", 403, "storage.buckets.get"},
		{"list get", "GET", at + "/iam", "", 403, "storage.buckets.getIamPolicy"},
		{"create get list", "PATCH", object, "{}", 403, "storage.objects.update"},
		{"create get list", "DELETE", object, "", 403, "storage.objects.delete"},
		{"create delete", "POST", "/upload" + at + "/o?uploadType=multipart", multipart, 200, "demo/x"},
		{"delete", "DELETE", object, "", 200, ""},
	} {
		clear(granted)
		for _, g := range strings.Fields(c.grants) {
			granted["storage.objects."+g] = true
		}
		got, text := b.callAs(c.method, c.path, c.body)
		if got == http.StatusNoContent {
			got = http.StatusOK
		}
		if got != c.code || !strings.Contains(text, c.says) {
			t.Errorf("with %q, %s %s: %d %s; want %d and %q", c.grants, c.method, c.path, got, text, c.code, c.says)
		}
	}
}

// callAs is call, with the type that a multipart body needs.
func (b *folder) callAs(method, path, body string) (int, string) {
	b.t.Helper()
	if !strings.HasPrefix(body, "--b") {
		return b.call(method, path, body)
	}
	res, err := http.Post(b.url+path, "multipart/related; boundary=b", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
