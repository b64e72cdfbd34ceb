package gce

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// refusing answers 403, as Google does to a VM with narrow scopes, and to one that lacks a permission.
type refusing struct{}

const googlesRefusal = `{"error":{"code":403,"message":"Request had insufficient authentication scopes."}}`

func (refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusForbidden, Request: req, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(googlesRefusal))}, nil
}

// A refusal names the VM's access scopes where they are too narrow; else it is handed on as it came.
func TestARefusalNamesNarrowScopes(t *testing.T) {
	t.Parallel()
	const at = "https://www.googleapis.com/auth/"
	for name, c := range map[string]struct{ scopes, want string }{
		"narrow": {at + "devstorage.read_only\n" + at + "logging.write\n",
			"(it has: devstorage.read_only, logging.write)"},
		"none":     {"\n", "(it has: none)"},
		"wide":     {at + "cloud-platform\n", ""},
		"not said": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeMetadata(t)
			f.set(tokenPath, tokenAnswer("one"))
			if c.scopes != "" {
				f.set("instance/service-accounts/default/scopes", c.scopes)
			}
			client := direct(newServiceAccount(f.dial(time.Second), refusing{}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://compute.googleapis.com/", nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := client.Do(req)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if body, err := io.ReadAll(res.Body); err != nil || string(body) != googlesRefusal {
					t.Errorf("the answer is %q, %v", body, err)
				}
				return
			}
			if err == nil {
				res.Body.Close()
				t.Fatal("the refusal is no error")
			}
			for _, want := range []string{"HTTP 403 Forbidden: ", "lack cloud-platform " + c.want,
				"Google says: Request had insufficient authentication scopes."} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %q", err, want)
				}
			}
		})
	}
}
