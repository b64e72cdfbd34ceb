package gce

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/setup"
)

// narrowScopes is a 403 to a VM whose access scopes lack cloud-platform, which cap what IAM grants. Google's own words
// do not say which there are. Whoever looks for the answer (googleapi.Error) finds it in here.
type narrowScopes struct{ status *googleapi.Error }

// Error says which scopes there are, and what to do.
func (n narrowScopes) Error() string {
	return fmt.Sprintf("HTTP %d %s: %s", n.status.Code, http.StatusText(n.status.Code), n.status.Message)
}

// Unwrap is the answer.
func (n narrowScopes) Unwrap() error { return n.status }

// NarrowScopes is the mark by which a user of Client knows that the VM's scopes have to be widened before IAM can
// matter.
func (narrowScopes) NarrowScopes() {}

// scopesChecked is a refusal as it is, or as an error where the VM's scopes are too narrow. Where the metadata server
// does not say them, the answer stands for itself.
func (s *serviceAccount) scopesChecked(ctx context.Context, res *http.Response) (*http.Response, error) {
	scopes, err := s.metadata.scopes(ctx)
	if err != nil {
		return res, nil
	}
	has, narrow := setup.NarrowScopes(scopes)
	if !narrow {
		return res, nil
	}
	defer res.Body.Close()
	status := &googleapi.Error{Code: res.StatusCode, Header: res.Header}
	_ = errors.As(googleapi.CheckResponse(res), &status)
	status.Message = fmt.Sprintf("this VM's access scopes lack cloud-platform (it has: %s). They cap what IAM grants. "+
		"Stop the VM, gcloud compute instances set-service-account NAME --scopes=cloud-platform, and start it. "+
		"Google says: %s", has, text(status))
	return nil, narrowScopes{status}
}

// scopes are the access scopes of the VM's service account, as URLs.
func (m *Metadata) scopes(ctx context.Context) (scopes []string, err error) {
	err = tryOnce(ctx, m.wait/triesPerWait, func(ctx context.Context) error {
		scopes, err = m.client.ScopesWithContext(ctx, "")
		return err
	})
	return scopes, err
}
