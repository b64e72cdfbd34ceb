package bucket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/record"
)

func TestOpenExplainsWhatIsWrongWithTheURL(t *testing.T) {
	for url, want := range map[string]string{
		"":                          "no scheme",
		"bucket":                    "no scheme",
		"/var/lib/record":           "no scheme",
		"s3://bucket":               `scheme "s3" is not known`,
		"mem://":                    `scheme "mem" is not known`,
		"http://x/y":                `scheme "http" is not known`,
		"gs://":                     "no bucket",
		"gs:///x":                   "no bucket",
		"gs://b?anonymous=true":     `query parameter "anonymous" is not known`,
		"gs://b?endpoint=localhost": `endpoint "localhost"`,
		"gs://user@b":               "a user or a fragment",
		"gs://b#x":                  "a user or a fragment",
		"file:///var/lib/record":    `scheme "file" is not known`,
		"gs://b\x00":                "invalid control character",
	} {
		if _, err := Open(url, "c1", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v: want an error that says %q", url, err, want)
		}
	}
	for _, cluster := range []string{"", "a/b", "..", ".x", "a b"} {
		if _, err := Open("gs://b", cluster, nil); err == nil {
			t.Errorf("Open accepts the cluster name %q", cluster)
		}
	}
}

func TestStoreNamesItsPlace(t *testing.T) {
	for url, want := range map[string]string{
		"gs://b":      "gs://b/c1/",
		"gs://b/":     "gs://b/c1/",
		"gs://b/p/q/": "gs://b/p/q/c1/",
	} {
		s, err := Open(url, "c1", nil)
		if err != nil || s.String() != want {
			t.Errorf("Open(%q) is at %v, %v: want %s", url, s, err, want)
		}
	}
}

func TestAnObjectInAFoldersPlaceIsNotAnEmptyRecord(t *testing.T) {
	for _, path := range []string{"epochs", "epochs/1", "replicas", "orders"} {
		url, folder := localBucket(t)
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if v, err := openStore(t, url).View(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "/c1/"+path+" is an object where") {
			t.Errorf("%s: %+v, %v", path, v, err)
		}
	}
}

func TestBucketThatCannotBeReadIsNotAnEmptyRecord(t *testing.T) {
	for name, c := range map[string]struct {
		url  string // empty: the test's bucket
		plan func(string, int) fault
		want string
	}{
		"no such bucket": {"gs://other", nil, "bucket other does not exist"},
		"no permission": {"", func(string, int) fault { return forbidden },
			"access denied (HTTP 403): the service account needs storage.objects.list"},
		"always 503": {"", func(string, int) fault { return refused },
			"503 Service Unavailable: injected (tried 5 times)"},
		"always 429":    {"", func(string, int) fault { return throttled }, "429 Too Many Requests"},
		"never answers": {"", func(string, int) fault { return silent }, "no answer within 400ms (tried 5 times)"},
		"answers break": {"", func(string, int) fault { return torn }, "unexpected EOF (tried 5 times)"},
		"answers stop":  {"", func(string, int) fault { return stuck }, "no answer within 400ms (tried 5 times)"},
		"nobody there":  {"gs://b?endpoint=http://127.0.0.1:1", nil, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBucket(t)
			if c.plan != nil {
				b.plan = c.plan
			}
			switch c.url {
			case "":
				c.url = b.url
			case "gs://other":
				c.url += "?endpoint=" + b.front.URL
			}
			_, err := openStore(t, c.url).View(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("View: %v: want %q", err, c.want)
			}
			if errors.Is(err, ErrNoBucket) != (name == "no such bucket") {
				t.Errorf("View: %v: is ErrNoBucket: %t", err, errors.Is(err, ErrNoBucket))
			}
		})
	}
}

func TestForbiddenIsNotAbsent(t *testing.T) {
	b := newBucket(t)
	d := openStore(t, b.url).driver
	if _, err := d.read(t.Context(), record.ClaimKey(1)); !errors.Is(err, errAbsent) {
		t.Errorf("absent: %v", err)
	}
	b.always("read", forbidden, 0)
	if _, err := d.read(t.Context(), record.ClaimKey(1)); err == nil || errors.Is(err, errAbsent) {
		t.Errorf("forbidden: %v", err)
	}
}

// What arrives otherwise than it is stored is read again, and what is stored otherwise than it was sent is refused.
func TestHashesAreCompared(t *testing.T) {
	b := newBucket(t)
	d := openStore(t, b.url).driver
	if err := d.create(t.Context(), record.ClaimKey(1), []byte("what was sent")); err != nil {
		t.Fatal(err)
	}
	b.always("read", altered, 2)
	if data, err := d.read(t.Context(), record.ClaimKey(1)); err != nil || string(data) != "what was sent" {
		t.Errorf("altered twice on its way: %q, %v", data, err)
	}
	b.always("read", altered, 0)
	if data, err := d.read(t.Context(), record.ClaimKey(1)); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("altered each time: %q, %v", data, err)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(sent, []byte("what"), []byte("that"))))
		b.ServeHTTP(w, r)
	}))
	defer front.Close()
	altering := openStore(t, "gs://b/some/prefix?endpoint="+front.URL).driver
	for what, err := range map[string]error{
		"create":    altering.create(t.Context(), record.ClaimKey(2), []byte("what was sent")),
		"overwrite": altering.overwrite(t.Context(), record.ClaimKey(3), []byte("what was sent")),
		"a stream": altering.createStream(t.Context(), record.ClaimKey(4), func(w io.Writer) error {
			_, err := w.Write([]byte("what was sent"))
			return err
		}),
	} {
		if err == nil || errors.Is(err, errExists) {
			t.Errorf("%s of what was altered on its way: %v", what, err)
		}
	}
	if entries, err := d.list(t.Context()); err != nil || len(entries) != 1 {
		t.Errorf("stored %v, %v", entries, err)
	}
}

// A server that takes an upload, and has stored something else, has not stored it.
func TestWhatAServerSaysThatItStoredIsCompared(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"md5Hash": "AAAAAAAAAAAAAAAAAAAAAA=="}`)
	}))
	defer server.Close()
	d := openStore(t, "gs://b/some/prefix?endpoint="+server.URL).driver
	err := d.createStream(t.Context(), record.ClaimKey(1), func(w io.Writer) error {
		_, err := w.Write([]byte("what was sent"))
		return err
	})
	if !errors.Is(err, errExists) {
		t.Errorf("%v, want %v", err, errExists)
	}
}

// withoutToken is a client that cannot get a token at first.
type withoutToken struct {
	failures int
	err      error
}

func (w *withoutToken) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.failures--; w.failures >= 0 {
		return nil, w.err
	}
	return http.DefaultTransport.RoundTrip(req)
}

// A token that could not be had is a failure that may pass, unless the client says otherwise.
func TestATokenThatCouldNotBeHadIsAskedForAgain(t *testing.T) {
	b := newBucket(t)
	for _, c := range []struct {
		failures int
		err      error
		left     int
		ok       bool
	}{
		{3, errors.New("the metadata server says 500"), -2, true}, // and a second listing
		{9, errors.New("the metadata server says 500"), 4, false},
		{9, noService{errors.New("no service account")}, 8, false},
	} {
		client := &withoutToken{c.failures, c.err}
		s, err := Open(b.url, "c1", &http.Client{Transport: client})
		if err != nil {
			t.Fatal(err)
		}
		_, err = hurry(s).View(t.Context())
		if (err == nil) != c.ok || client.failures != c.left || err != nil && !errors.Is(err, c.err) {
			t.Errorf("%d times %v: %v, %d are left, want %d", c.failures, c.err, err, client.failures, c.left)
		}
	}
}

func TestBucketHonoursTheCallersContext(t *testing.T) {
	b := newBucket(t)
	b.always("list", silent, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := openStore(t, b.url).View(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if d := time.Since(start); d > fastPace.timeout {
		t.Errorf("gave up after %v", d)
	}
}

func TestRetryGivesUpInTime(t *testing.T) {
	for name, c := range map[string]struct {
		do        func(context.Context) (int, error)
		from, to  time.Duration
		wantCalls int
	}{
		"a server that does not answer": {
			func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
			20 * time.Second, 25 * time.Second, 5},
		"a server that refuses": {
			func(context.Context) (int, error) { return 0, errors.New("refused") },
			1500 * time.Millisecond, 3 * time.Second, 5},
		"an answer that is final": {
			func(context.Context) (int, error) { return 0, &googleapi.Error{Code: 403} },
			0, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, calls := time.Now(), 0
			_, err := retry(t.Context(), normalPace, func(ctx context.Context) (int,
				error) {
				calls++
				return c.do(ctx)
			})
			if d := time.Since(start); err == nil || calls != c.wantCalls || d < c.from || d > c.to {
				t.Errorf("%s: %d calls in %v, %v", name, calls, d, err)
			}
		})
	}
}

// noService is an error that the client of a VM without service account calls final.
type noService struct{ error }

func (noService) Final() {}

func TestWhatIsTriedAgain(t *testing.T) {
	var shape []int
	for err, want := range map[error]bool{
		&googleapi.Error{Code: 408}: true, &googleapi.Error{Code: 429}: true,
		&googleapi.Error{Code: 500}: true, &googleapi.Error{Code: 599}: true,
		&googleapi.Error{Code: 400}: false, &googleapi.Error{Code: 401}: false, &googleapi.Error{Code: 404}: false,
		&googleapi.Error{Code: 412}: false, &googleapi.Error{Code: 499}: false,
		&url.Error{Op: "Get", Err: errors.New("http2: client connection lost")}: true, io.ErrUnexpectedEOF: true,
		json.Unmarshal([]byte("<html>"), &shape): false, json.Unmarshal([]byte("{}"), &shape): false,
		&url.Error{Op: "Get", Err: noService{errors.New("no service account")}}: false,
		errAbsent: false, errExists: false, errTooLarge: false,
	} {
		if got := transient(fmt.Errorf("read: %w", err)); got != want {
			t.Errorf("%v: tried again %t, want %t", err, got, want)
		}
	}
	if transient(nil) {
		t.Error("a success is tried again")
	}
}
