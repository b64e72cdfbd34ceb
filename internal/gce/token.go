package gce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

const (
	tokenPath = "instance/service-accounts/default/token"
	// renewBefore: the metadata server hands out the same token until five minutes before its end, then a new one.
	renewBefore = 4 * time.Minute
)

// Client sends requests to Google's services as the VM's service account. It is the one token source of an agent: the
// record, Cloud KMS and the Compute API share it. Each request ends with its own context, also while it waits for the
// token; a token that a server refuses is forgotten. Google's own default credentials are not used on a VM: they follow
// GCE_METADATA_HOST, and where the metadata server is away when they are first looked for, they take the machine for no
// VM until the process ends.
func (m *Metadata) Client() *http.Client { return direct(m.account) }

// serviceAccount adds the token of the VM's service account to each request that may carry it.
type serviceAccount struct {
	metadata *Metadata
	next     http.RoundTripper

	// lock is held while the token is asked for: a mutex that a context can stop waiting for. It guards what follows.
	lock  chan struct{}
	token string
	until time.Time
}

func newServiceAccount(m *Metadata, next http.RoundTripper) *serviceAccount {
	return &serviceAccount{metadata: m, next: next, lock: make(chan struct{}, 1)}
}

// RoundTrip implements http.RoundTripper. A refusal of a VM with narrow access scopes becomes an error.
func (s *serviceAccount) RoundTrip(req *http.Request) (*http.Response, error) {
	if !mayCarryToken(req.URL) {
		return s.next.RoundTrip(req)
	}
	res, err := s.send(req)
	if err != nil || res.StatusCode != http.StatusForbidden {
		return res, err
	}
	return s.scopesChecked(req.Context(), res)
}

// send sends a request with the token. An answer of 401 (Unauthorized) is followed by one more try where the metadata
// server has another token by now: a token can end before its time, such as while a VM is suspended.
func (s *serviceAccount) send(req *http.Request) (*http.Response, error) {
	token, err := s.current(req.Context(), "")
	if err != nil {
		closeBody(req)
		return nil, err
	}
	res, err := s.next.RoundTrip(authorized(req, token))
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	fresh, err := s.current(req.Context(), token)
	if err != nil {
		res.Body.Close()
		return nil, err
	}
	again := authorized(req, fresh)
	if fresh == token || !rewind(again) {
		return res, nil
	}
	res.Body.Close()
	return s.next.RoundTrip(again)
}

// mayCarryToken reports whether a request may carry the VM's token: over TLS, and in the clear to an address of this
// machine or of a private network. A document can name a stand-in for one of Google's services. Who writes the
// document runs programs as root on this VM, where the metadata server gives the token to anybody, so the name of the
// server needs no check. But a token must not cross a network in the clear by mistake.
func mayCarryToken(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return err == nil && (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast())
}

// current is a token that has not ended, and not the refused one, which is forgotten. It asks once: whoever asked the
// question retries.
func (s *serviceAccount) current(ctx context.Context, refused string) (string, error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the answer of %s for %s: %w", s.metadata.name(), tokenPath, context.Cause(ctx))
	}
	if s.token == refused {
		s.token = ""
	}
	if s.token != "" && time.Now().Before(s.until) {
		return s.token, nil
	}
	token, life, err := s.metadata.token(ctx)
	if err != nil {
		return "", err
	}
	s.token, s.until = token, time.Now().Add(life-renewBefore)
	return token, nil
}

// token asks for the service account's token.
func (m *Metadata) token(ctx context.Context) (token string, life time.Duration, err error) {
	var text string
	err = tryOnce(ctx, m.wait/triesPerWait, func(ctx context.Context) error {
		text, err = m.client.GetWithContext(ctx, tokenPath)
		return judge(err)
	})
	if err != nil {
		return "", 0, fmt.Errorf("ask %s for %s: %w", m.name(), tokenPath, err)
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	// The answer itself never appears in an error: it is the secret.
	if json.Unmarshal([]byte(text), &answer) != nil || answer.Token == "" || answer.Seconds <= 0 {
		return "", 0, finalError{errors.New("found no token at " + tokenPath)}
	}
	return answer.Token, time.Duration(answer.Seconds) * time.Second, nil
}

// authorized is the request with a token. The caller's own is not changed.
func authorized(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return req
}

// rewind gives the request its body from the start; false: the body cannot be read twice.
func rewind(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return true
	}
	if req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	req.Body = body
	return true
}

// closeBody is what a RoundTripper owes a request that it does not send.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
