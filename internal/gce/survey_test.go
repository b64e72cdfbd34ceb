package gce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/setup"
)

// surveyOf asks what answers.
func surveyOf(t *testing.T, wait time.Duration, answers http.HandlerFunc) *Survey {
	t.Helper()
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	s, err := NewSurvey(SurveyConfig{Project: "demo", Region: "us-central1", Cluster: "prod",
		Endpoint: server.URL + "/compute/v1/", Client: http.DefaultClient, Wait: wait})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wanted are facts that ask everything.
func wanted() *setup.Facts {
	return &setup.Facts{KeyName: "projects/demo/locations/l/keyRings/r/cryptoKeys/k", Account: "m@x",
		Needs: setup.Permissions{Project: []string{"p"}, Account: []string{"a"}}}
}

// silent never answers.
func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // before that a server does not see that its client has left
	<-r.Context().Done()
}

func noBucket(context.Context, *setup.Facts) {}

// All questions have one time together: who is silent is left after it, and each question says that it had no answer.
func TestASilentGoogleEndsTheSurvey(t *testing.T) {
	t.Parallel()
	const wait = 600 * time.Millisecond
	s := surveyOf(t, wait, silent)
	f, begin, bucketAsked := wanted(), time.Now(), false
	err := s.Ask(t.Context(), f, func(ctx context.Context, _ *setup.Facts) {
		<-ctx.Done()
		bucketAsked = true
	})
	if took := time.Since(begin); took > 3*wait { // one after the other they take sixteen times as long
		t.Errorf("it took %s", took)
	}
	const want = "none of 13 questions about project demo was answered by Google, such as: ask "
	if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, errNoAnswer) {
		t.Errorf("found %v, want %q", err, want)
	}
	if !bucketAsked {
		t.Error("the bucket's time was not the survey's")
	}
	faults := []*setup.Fault{f.Zones.Fault, f.VMs.Fault, f.Metadata.Fault, f.Firewall.Fault, f.Subnets.Fault,
		f.NATs.Fault, f.Addresses.Fault, f.ProjectPolicy.Fault, f.Key.Fault, f.KeyPolicy.Fault, f.RingPolicy.Fault,
		f.ServiceAccount.Fault, f.HasOnProject.Fault, f.HasOnAccount.Fault}
	for _, name := range setup.OwnRoles(f.Project) {
		faults = append(faults, f.Roles[name].Fault)
	}
	for n, fault := range faults {
		if fault == nil || fault.Why != setup.Failed || !strings.Contains(fault.Text, "no answer") &&
			!strings.Contains(fault.Text, "the 600ms for all questions are over") {
			t.Errorf("question %d: %+v", n, fault)
		}
	}
}

// What is refused or absent is an answer: something is known then.
func TestARefusalIsAnAnswer(t *testing.T) {
	t.Parallel()
	s := surveyOf(t, time.Second, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/firewalls") {
			send(w, http.StatusForbidden, apiError(http.StatusForbidden, "forbidden", "no"))
			return
		}
		silent(w, r)
	})
	f := wanted()
	if err := s.Ask(t.Context(), f, noBucket); err != nil || f.Firewall.Fault.Why != setup.Refused {
		t.Errorf("found %v, %+v", err, f.Firewall.Fault)
	}
}

// The roles of the policies are asked for at the same time: each answer comes once all of them were asked.
func TestRolesAreAskedForAtOnce(t *testing.T) {
	t.Parallel()
	const roles = 12
	var mu sync.Mutex
	seen, all := map[string]bool{}, make(chan struct{})
	s := surveyOf(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/roles/"):
			mu.Lock()
			if !seen[r.URL.Path] && len(seen)+1 == roles+len(setup.OwnRoles("")) {
				close(all)
			}
			seen[r.URL.Path] = true
			mu.Unlock()
			select {
			case <-all:
			case <-r.Context().Done():
			}
			send(w, http.StatusOK, `{"includedPermissions":["p"]}`)
		case strings.HasSuffix(r.URL.Path, "projects/demo:getIamPolicy"):
			var bindings []string
			for n := range roles {
				bindings = append(bindings, fmt.Sprintf(`{"role":"roles/r%d"}`, n), `{"role":"roles/r0"}`)
			}
			send(w, http.StatusOK, `{"bindings":[`+strings.Join(bindings, ",")+`]}`)
		default:
			send(w, http.StatusForbidden, apiError(http.StatusForbidden, "forbidden", "no"))
		}
	})
	f := wanted()
	if err := s.Ask(t.Context(), f, noBucket); err != nil || len(f.Roles) != roles+len(setup.OwnRoles("")) {
		t.Errorf("found %v, %d roles", err, len(f.Roles))
	}
	for name, role := range f.Roles {
		if role.Fault != nil || len(role.Answer) != 1 {
			t.Errorf("%s: %+v", name, role)
		}
	}
}
