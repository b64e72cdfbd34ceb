package localgce

import (
	"net/http"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/localgce/fault"
)

func TestScopesThatAreNoneAreRefused(t *testing.T) {
	for _, s := range []string{"", "https://www.googleapis.com/auth/cloud-platform", "Cloud"} {
		if err := (&Project{}).SetScopes("a", []string{"cloud-platform", s}); err == nil ||
			!strings.Contains(err.Error(), "a name such as cloud-platform") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestWhatScopesCover(t *testing.T) {
	const at = "https://www.googleapis.com/auth/"
	for _, c := range []struct {
		scope   string
		service fault.Service
		method  string
		want    bool
	}{
		{"cloud-platform", fault.Storage, http.MethodPost, true},
		{"cloud-platform", fault.Compute, http.MethodDelete, true},
		{"devstorage.read_only", fault.Storage, http.MethodGet, true},
		{"devstorage.read_only", fault.Storage, http.MethodPost, false},
		{"devstorage.read_only", fault.Compute, http.MethodGet, false},
		{"devstorage.read_write", fault.Storage, http.MethodPost, true},
		{"compute.readonly", fault.Compute, http.MethodGet, true},
		{"compute.readonly", fault.Compute, http.MethodPost, false},
	} {
		if got := covers([]string{at + "logging.write", at + c.scope}, c.service, c.method); got != c.want {
			t.Errorf("%s, %s of %s: %t", c.scope, c.method, c.service, got)
		}
	}
	if covers(nil, fault.Storage, http.MethodGet) {
		t.Error("a VM without scopes reads the bucket")
	}
}
