package record

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOpenExplainsWhatIsWrongWithTheURL(t *testing.T) {
	for url, want := range map[string]string{
		"":                                  "no scheme",
		"bucket":                            "no scheme",
		"/var/lib/record":                   "no scheme",
		"s3://bucket":                       `scheme "s3" is not known`,
		"mem://":                            `scheme "mem" is not known`,
		"http://x/y":                        `scheme "http" is not known`,
		"gs://":                             "no bucket",
		"gs:///x":                           "no bucket",
		"gs://b?anonymous=true":             `query parameter "anonymous" is not known`,
		"gs://b?endpoint=localhost":         `endpoint "localhost"`,
		"gs://user@b":                       "a user or a fragment",
		"gs://b#x":                          "a user or a fragment",
		"file://var/lib/record":             "file:///var/lib/record",
		"file://":                           "no folder",
		"file:var":                          "no folder",
		"file:///x?create_dir=true":         "a folder takes none",
		"gs://b\x00":                        "invalid control character",
		"file:///x?endpoint=http://1.2.3.4": "a folder takes none",
	} {
		if _, err := Open(t.Context(), url, "c1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v: want an error that says %q", url, err, want)
		}
	}
	for _, cluster := range []string{"", "a/b", "..", ".x", "a b"} {
		if _, err := Open(t.Context(), "file:///x", cluster); err == nil {
			t.Errorf("Open accepts the cluster name %q", cluster)
		}
	}
}

func TestStoreNamesItsPlace(t *testing.T) {
	for url, want := range map[string]string{
		"gs://b":            "gs://b/c1/",
		"gs://b/":           "gs://b/c1/",
		"gs://b/p/q/":       "gs://b/p/q/c1/",
		"file:///var/rec/":  "/var/rec/c1/",
		"file:///var/a/../": "/var/c1/",
	} {
		s, err := Open(t.Context(), url, "c1")
		if err != nil || s.String() != want {
			t.Errorf("Open(%q) is at %v, %v: want %s", url, s, err, want)
		}
	}
}

func TestFolderThatCannotBeReadIsNotAnEmptyRecord(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "full", "c1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir + "/absent":    "folder " + dir + "/absent does not exist: create it (mkdir -p " + dir + "/absent)",
		file:               file + " is not a folder",
		file + "/below":    "not a directory",
		dir + "/full":      dir + "/full/c1 is not a folder",
		dir + "/a/b/c/d/e": "does not exist",
	} {
		s := openStore(t, "file://"+path)
		_, viewErr := s.View(t.Context())
		_, _, createErr := s.CreateInception(t.Context(), Inception{UID: "u", Name: "c1"})
		if viewErr == nil || !strings.Contains(viewErr.Error(), want) {
			t.Errorf("%s: View: %v: want %q", path, viewErr, want)
		}
		if createErr == nil || strings.Contains(createErr.Error(), "unknown") {
			t.Errorf("%s: create: %v: want that there is no inception", path, createErr)
		}
		if f := s.Check(t.Context()); f[0].Level != Fail || f[0].Subject != "reach" {
			t.Errorf("%s: Check: %v", path, f)
		}
	}
}

func TestFileInAFoldersPlaceIsNotAnEmptyRecord(t *testing.T) {
	for _, path := range []string{"epochs", "epochs/1", "replicas", "orders"} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "c1", filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "c1", path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if v, err := openStore(t, "file://"+dir).View(t.Context()); err == nil || !strings.Contains(err.Error(), "/c1/"+path+" is an object where") {
			t.Errorf("%s: %+v, %v", path, v, err)
		}
	}
}

func TestFolderKeepsItsFilesToRoot(t *testing.T) {
	dir := t.TempDir()
	write(t, openStore(t, "file://"+dir), fullView())
	err := filepath.WalkDir(filepath.Join(dir, "c1"), func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCrashInTheMiddleOfACreate stops a process while it writes an object: the object does not exist, and what is left of it
// disturbs nobody.
func TestCrashInTheMiddleOfACreate(t *testing.T) {
	dir := t.TempDir()
	cmd := process(t, "crasher", "file://"+dir)
	cmd.Stderr = nil
	if err := cmd.Run(); err == nil {
		t.Fatal("the process wrote 1 MiB against a limit of 64 KiB")
	}
	s := openStore(t, "file://"+dir)
	if v, err := s.View(t.Context()); err != nil || v.Bundle != 0 {
		t.Fatalf("bundle generation %d, %v: want none", v.Bundle, err)
	}
	half := filepath.Join(dir, "c1/bundle/.durable-1.sealed-123") // as a power cut leaves it: nobody removed it
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if entries, err := s.driver.list(t.Context()); err != nil || len(entries) != 0 {
		t.Fatalf("list: %v, %v: want nothing", entries, err)
	}
	if _, won, err := s.CreateSealed(t.Context(), 1, []byte("whole")); err != nil || !won {
		t.Fatalf("won %v, %v", won, err)
	}
}

func TestBucketThatCannotBeReadIsNotAnEmptyRecord(t *testing.T) {
	for name, c := range map[string]struct {
		url  string // empty: the test's bucket
		plan func(string, int) fault
		want string
	}{
		"no such bucket": {"gs://other", nil, "bucket other does not exist"},
		"no permission":  {"", func(string, int) fault { return forbidden }, "access denied (HTTP 403): the service account needs storage.objects.list"},
		"always 503":     {"", func(string, int) fault { return refused }, "503 Service Unavailable: injected (tried 5 times)"},
		"always 429":     {"", func(string, int) fault { return throttled }, "429 Too Many Requests"},
		"never answers":  {"", func(string, int) fault { return silent }, "no answer within 400ms (tried 5 times)"},
		"answers break":  {"", func(string, int) fault { return torn }, "the answer broke off"},
		"nobody there":   {"gs://b?endpoint=http://127.0.0.1:1", nil, "connection refused"},
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
			if _, err := openStore(t, c.url).View(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("View: %v: want %q", err, c.want)
			}
		})
	}
}

func TestForbiddenIsNotAbsent(t *testing.T) {
	b := newBucket(t)
	d := openStore(t, b.url).driver
	if _, err := d.read(t.Context(), claimKey(1)); !errors.Is(err, errAbsent) {
		t.Errorf("absent: %v", err)
	}
	b.always("read", forbidden, 0)
	if _, err := d.read(t.Context(), claimKey(1)); err == nil || errors.Is(err, errAbsent) {
		t.Errorf("forbidden: %v", err)
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
	synctest.Test(t, func(t *testing.T) {
		start, calls := time.Now(), 0
		_, err := retry(t.Context(), normalPace, func(ctx context.Context, a *attempt) (int, error) {
			calls++
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if d := time.Since(start); err == nil || calls != normalPace.tries || d < 20*time.Second || d > 25*time.Second {
			t.Errorf("%d calls in %v, %v", calls, d, err)
		}
		start, calls = time.Now(), 0
		_, err = retry(t.Context(), normalPace, func(ctx context.Context, a *attempt) (int, error) {
			calls++
			a.fail(errors.New("refused"))
			return 0, ctx.Err()
		})
		if d := time.Since(start); err == nil || calls != normalPace.tries || d > 4*time.Second {
			t.Errorf("%d calls in %v, %v", calls, d, err)
		}
	})
}

func TestRetryDoesNotRepeatWhatIsFinal(t *testing.T) {
	calls := 0
	final := errors.New("final")
	_, err := retry(t.Context(), fastPace, func(context.Context, *attempt) (int, error) { calls++; return 0, final })
	if calls != 1 || !errors.Is(err, final) {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestEndpointIsSentNoCredentials guards against the machine's token going to whoever an endpoint names.
func TestEndpointIsSentNoCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", fakeCredentials(t))
	b := newBucket(t)
	handler := b.front.Config.Handler
	b.front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "" {
			t.Errorf("Authorization: %.20s…", got)
		}
		handler.ServeHTTP(w, r)
	})
	write(t, openStore(t, b.url), fullView())
	checkView(t, openStore(t, b.url), fullView())
}

// fakeCredentials is a file as gcloud writes it for a person.
func fakeCredentials(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "credentials.json")
	content := `{"type":"authorized_user","client_id":"x","client_secret":"y","refresh_token":"z"}`
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
