package gce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	tokenPath = "instance/service-accounts/default/token"
	// renewBefore: the metadata server hands out the same token until five minutes before its end, then a new one.
	renewBefore = 4 * time.Minute
)

// vmCredentials adds the token of the VM's service account to each request. Google's own default credentials are not
// used on a VM: they follow GCE_METADATA_HOST, and where the metadata server is away when they are first looked for,
// they take the machine for no VM until the process ends.
type vmCredentials struct {
	metadata *Metadata
	next     http.RoundTripper

	mu    sync.Mutex
	token string
	until time.Time
}

// RoundTrip implements http.RoundTripper.
func (v *vmCredentials) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := v.current(req.Context())
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return v.next.RoundTrip(req)
}

// current is a token that has not ended. It asks once: whoever asked the question retries.
func (v *vmCredentials) current(ctx context.Context) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.token != "" && time.Now().Before(v.until) {
		return v.token, nil
	}
	text, err := v.metadata.client.GetWithContext(ctx, tokenPath)
	if err = judge(err); err != nil {
		return "", fmt.Errorf("ask %s for %s: %w", v.metadata.name(), tokenPath, err)
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	// The answer itself never appears in an error: it is the secret.
	if json.Unmarshal([]byte(text), &answer) != nil || answer.Token == "" || answer.Seconds <= 0 {
		return "", finalError{errors.New("found no token at " + tokenPath)}
	}
	v.token, v.until = answer.Token, time.Now().Add(time.Duration(answer.Seconds)*time.Second-renewBefore)
	return v.token, nil
}
