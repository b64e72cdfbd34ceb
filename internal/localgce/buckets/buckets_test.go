package buckets_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// folder is one that buckets are served from, with the calls that tests make.
type folder struct {
	t           *testing.T
	folder, url string
}

func openBuckets(t *testing.T) folder {
	t.Helper()
	b := folder{t: t, folder: t.TempDir()}
	b.open()
	return b
}

// open serves the folder anew, as after the server's death.
func (b *folder) open() {
	b.t.Helper()
	served, err := buckets.Open(b.folder, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.url = serve(b.t, served)
}

func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func (b *folder) file(object string) string {
	return filepath.Join(b.folder, instance.BucketName, object)
}

func (b *folder) plant(object, content string) {
	b.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(b.file(object)), 0o700),
		os.WriteFile(b.file(object), []byte(content), 0o600)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *folder) call(method, path, body string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (b *folder) want(code int, says, method, path, body string) {
	b.t.Helper()
	if got, text := b.call(method, path, body); got != code || !strings.Contains(text, says) {
		b.t.Errorf("%s %s: %d %s; want %d and %q", method, path, got, text, code, says)
	}
}

func (b *folder) holds(object, content string) {
	b.t.Helper()
	if got, err := os.ReadFile(b.file(object)); err != nil || string(got) != content {
		b.t.Errorf("the file of %s: %q, %v; want %q", object, got, err, content)
	}
}

const (
	objects  = "/storage/v1/b/record/o"
	upload   = "/upload/storage/v1/b/record/o?uploadType=media&name="
	ifAbsent = "&ifGenerationMatch=0"
)

func TestObjectsAreFiles(t *testing.T) {
	b := openBuckets(t)
	b.want(200, "", "POST", upload+"a/b.json"+ifAbsent, "one")
	b.want(412, "", "POST", upload+"a/b.json"+ifAbsent, "two")
	b.want(200, "", "POST", upload+"mark"+ifAbsent, "first")
	b.want(200, "", "POST", upload+"mark", "second")
	b.want(200, "", "POST", upload+"gone", "")
	b.want(200, "", "DELETE", objects+"/gone", "")
	b.holds("a/b.json", "one")
	b.holds("mark", "second")
	if found, err := os.ReadDir(b.file("")); len(found) != 2 || err != nil {
		t.Errorf("the folder holds %v, %v", found, err)
	}
	_, before := b.call("GET", objects, "")
	b.open()
	_, after := b.call("GET", objects, "")
	for _, same := range []string{`"generation":"`, `"md5Hash":"`, `"name":"`} {
		for _, now := range strings.Split(after, same)[1:] {
			if value, _, _ := strings.Cut(now, `"`); !strings.Contains(before, same+value+`"`) {
				t.Errorf("opened again: %s%s; before: %s", same, value, before)
			}
		}
	}
	b.want(412, "", "POST", upload+"a/b.json"+ifAbsent, "two")
	b.want(200, "one", "GET", objects+"/a%2Fb.json?alt=media", "")
	b.want(404, "", "GET", objects+"/gone?alt=media", "")
	b.want(404, "", "GET", "/storage/v1/b/c/o", "")
}

func TestFilesThatSomebodyPlantsAreObjects(t *testing.T) {
	b := openBuckets(t)
	b.plant("a/b", "planted")
	b.want(412, "", "POST", upload+"a%2Fb"+ifAbsent, "late")
	b.want(200, `"a/b"`, "GET", objects, "")
	b.want(200, "planted", "GET", objects+"/a%2Fb?alt=media", "")
	b.plant("a/b", "planted again")
	b.want(200, "planted again", "GET", objects+"/a%2Fb?alt=media", "")
	if err := os.RemoveAll(b.file("a")); err != nil {
		t.Fatal(err)
	}
	if _, list := b.call("GET", objects, ""); strings.Contains(list, "a/b") {
		t.Errorf("taken away: %s", list)
	}
	b.plant("c", "here")
	b.want(200, "here", "GET", objects+"/c?alt=media", "")
	if err := os.Remove(b.file("c")); err != nil {
		t.Fatal(err)
	}
	b.want(404, "", "GET", objects+"/c?alt=media", "")
	b.want(200, "", "POST", upload+"a%2Fb"+ifAbsent, "new")
	b.holds("a/b", "new")
	if err := os.Mkdir(filepath.Join(b.folder, "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.want(200, "", "GET", "/storage/v1/b/c/o", "")
}

// The process died before the file had its name: nobody was told of the object, or could read it.
func TestAnObjectThatWasCutShortIsNone(t *testing.T) {
	b := openBuckets(t)
	if err := os.WriteFile(filepath.Join(b.folder, ".new"), []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.open()
	if _, list := b.call("GET", objects, ""); strings.Contains(list, "new") {
		t.Errorf("it is there: %s", list)
	}
	b.want(200, "", "POST", upload+"whole"+ifAbsent, "half and half")
	b.holds("whole", "half and half")
}

func TestWhatCannotBeReadIsNotAbsent(t *testing.T) {
	b := openBuckets(t)
	if err := os.Symlink("nowhere", b.file("object")); err != nil {
		t.Fatal(err)
	}
	if _, err := buckets.Open(b.folder, nil); err == nil || !strings.Contains(err.Error(), "object") {
		t.Errorf("buckets with an object that cannot be read are opened: %v", err)
	}
	b.want(503, "object", "POST", upload+"object"+ifAbsent, "one")
	b.want(503, "object", "GET", objects, "")
	b.want(503, "cannot be read", "GET", objects+"/object?alt=media", "")
	if err := os.Remove(b.file("object")); err != nil {
		t.Fatal(err)
	}
	b.want(200, "", "POST", upload+"object"+ifAbsent, "one")
}

func TestAChangeThatCannotBeWrittenIsNone(t *testing.T) {
	b := openBuckets(t)
	b.want(200, "", "POST", upload+"a", "one")
	b.want(503, "write object record/a/b", "POST", upload+"a/b", "two") // a is a file
	b.want(200, "one", "GET", objects+"/a?alt=media", "")
	b.want(404, "", "GET", objects+"/a%2Fb?alt=media", "")
	b.want(503, "no file can have that name", "POST", upload+"../a", "out of it")
	b.want(200, "", "POST", upload+"c", "three")
}

func TestABucketLiesThatItIsEmpty(t *testing.T) {
	b := openBuckets(t)
	b.plant("a", "one")
	served, err := buckets.Open(b.folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	faults, nobody := &fault.Set{}, func(*http.Request) string { return "" }
	front := faults.Before(fault.Storage, nobody, served)
	b.url = serve(t, front)
	b.want(200, `"a"`, "GET", objects, "")
	if err := faults.Put(fault.Storage, fault.Fault{Kind: "empty"}); err != nil {
		t.Fatal(err)
	}
	if code, list := b.call("GET", objects+"?prefix=", ""); code != 200 || strings.Contains(list, "items") {
		t.Errorf("%d %s", code, list)
	}
	b.want(200, "one", "GET", objects+"/a?alt=media", "")
}

// Who takes an answer in slowly, or sends slowly, holds up nobody.
func TestSlowClientsHoldUpNobody(t *testing.T) {
	b := openBuckets(t)
	b.plant("large", strings.Repeat("x", 64<<20))
	reader, err := http.Get(b.url + objects + "/large?alt=media")
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Body.Close()
	body, writer := io.Pipe()
	defer writer.Close()
	go http.Post(b.url+upload+"slow", "text/plain", body)
	_, _ = writer.Write([]byte("the beginning"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.want(200, "", "POST", upload+"quick", "one")
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("a writer waits for others")
	}
}
