package gce

import (
	"fmt"
	"io"
	"net/http"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials/impersonate"

	"github.com/quorate/quorate/internal/setup"
)

// ImpersonatingClient sends requests to Google's services as a service account, for a person who may create tokens for
// it. As UserClient, it looks for credentials at the first request, and sends a token to no stand-in.
func ImpersonatingClient(account string) *http.Client {
	return direct(impersonating(account, newCloudTransport()))
}

func impersonating(account string, next http.RoundTripper) *userCredentials {
	person := direct(tokenAnswers{account, &userCredentials{next: next}})
	return &userCredentials{next: next, detect: func() (*auth.Credentials, error) {
		return impersonate.NewCredentials(&impersonate.CredentialsOptions{TargetPrincipal: account,
			Scopes: []string{setup.CloudScope}, Client: person})
	}}
}

// tokenAnswers says what a refused token for the account means: another try would meet it again.
type tokenAnswers struct {
	account string
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t tokenAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err != nil || res.StatusCode < 400 || passing(res.StatusCode) {
		return res, err
	}
	defer res.Body.Close()
	start, _ := io.ReadAll(io.LimitReader(res.Body, maxShown)) // the status says enough where the words are cut off
	return nil, finalError{fmt.Errorf("act as %s: found status %d %q; who runs this needs "+
		"roles/iam.serviceAccountTokenCreator on that account", t.account, res.StatusCode, start)}
}
