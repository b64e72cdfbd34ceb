package gce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"google.golang.org/api/googleapi"
)

// narrowScopes is a 403 to a VM whose access scopes do not have cloud-platform: they cap what IAM grants, and Google's
// own words name neither them nor which there are. It is the answer for all that looks for one (googleapi.Error).
type narrowScopes struct{ status *googleapi.Error }

// Error says which scopes there are, and what to do.
func (n narrowScopes) Error() string {
	return fmt.Sprintf("HTTP %d %s: %s", n.status.Code, http.StatusText(n.status.Code), n.status.Message)
}

// Unwrap is the answer.
func (n narrowScopes) Unwrap() error { return n.status }

// NarrowScopes is the mark by which a user of Client knows that not IAM is to be changed.
func (narrowScopes) NarrowScopes() {}

// scopesChecked is a refusal as it is, or as an error where the VM's scopes are too narrow. Where the metadata server
// does not say them, the answer stands for itself.
func (s *serviceAccount) scopesChecked(ctx context.Context, res *http.Response) (*http.Response, error) {
	scopes, err := s.metadata.scopes(ctx)
	if err != nil || slices.Contains(scopes, cloudScope) {
		return res, nil
	}
	defer res.Body.Close()
	status := &googleapi.Error{Code: res.StatusCode, Header: res.Header}
	_ = errors.As(googleapi.CheckResponse(res), &status)
	status.Message = fmt.Sprintf("this VM's access scopes lack cloud-platform (it has: %s). They cap what IAM grants. "+
		"Stop the VM, gcloud compute instances set-service-account NAME --scopes=cloud-platform, and start it. "+
		"Google says: %s", cmp.Or(short(scopes), "none"), text(status))
	return nil, narrowScopes{status}
}

// short are scopes by their names.
func short(scopes []string) string {
	var names []string
	for _, s := range scopes {
		if s != "" {
			names = append(names, path.Base(s))
		}
	}
	return strings.Join(names, ", ")
}

// scopes are the access scopes of the VM's service account, as URLs.
func (m *Metadata) scopes(ctx context.Context) (scopes []string, err error) {
	err = tryOnce(ctx, m.wait/triesPerWait, func(ctx context.Context) error {
		scopes, err = m.client.ScopesWithContext(ctx, "")
		return err
	})
	return scopes, err
}
