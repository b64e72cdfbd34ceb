package localgce

import (
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/fault"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// widest are the access scopes with which a service carries out whatever IAM allows, by the last part of their URLs;
// readers are those with which it answers only who reads.
var (
	widest = map[fault.Service][]string{fault.Compute: {"cloud-platform", "compute"},
		fault.Storage: {"cloud-platform", "devstorage.read_write", "devstorage.full_control"}}
	readers = map[fault.Service][]string{fault.Compute: {"cloud-platform.read-only", "compute.readonly"},
		fault.Storage: {"cloud-platform.read-only", "devstorage.read_only"}}
)

// scopeName is an access scope without the first part of its URL.
var scopeName = regexp.MustCompile(`^[a-z][-_.a-z]*$`)

// SetScopes gives the tokens of a VM that is off other access scopes, by their names, such as cloud-platform
// (instances.setServiceAccount).
func (p *Project) SetScopes(name string, scopes []string) error {
	urls := []string{}
	for _, s := range scopes {
		if !scopeName.MatchString(s) {
			return fmt.Errorf("access scope %q: a name such as cloud-platform or devstorage.read_only is needed", s)
		}
		urls = append(urls, "https://www.googleapis.com/auth/"+s)
	}
	err := p.operate(name, statusTerminated, func(v *vm) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		v.Made.Shown = answer.With(v.Made.Shown, map[string]any{
			"serviceAccounts": []instance.Account{{Email: instance.MastersAccount(), Scopes: urls}}})
		p.publish(v)
		return nil
	})
	if err != nil {
		return err
	}
	return p.save()
}

// withinScopes refuses what a VM asks of a service beyond its access scopes, as Google does, whatever IAM grants.
func withinScopes(s fault.Service, of func(*http.Request) (scopes []string, isVM bool),
	next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if scopes, isVM := of(r); isVM && !covers(scopes, s, r.Method) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="https://accounts.google.com/", `+
				`error="insufficient_scope", scope="`+instance.CloudScope+`"`)
			answer.Error(w, http.StatusForbidden, "insufficientPermissions",
				"Request had insufficient authentication scopes.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// covers says whether access scopes let a request of a method through.
func covers(scopes []string, s fault.Service, method string) bool {
	reads := method == http.MethodGet || method == http.MethodHead
	return slices.ContainsFunc(scopes, func(scope string) bool {
		name := path.Base(scope)
		return slices.Contains(widest[s], name) || reads && slices.Contains(readers[s], name)
	})
}

// scopesOf are those of the VM that sent a request; isVM: one has.
func (p *Project) scopesOf(r *http.Request) (scopes []string, isVM bool) {
	who := p.caller(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.vms, func(v *vm) bool { return v.key() == who })
	if i < 0 {
		return nil, false
	}
	for _, a := range (instance.VM{Made: p.vms[i].Made}).ServiceAccounts() {
		scopes = append(scopes, a.Scopes...)
	}
	return scopes, true
}
