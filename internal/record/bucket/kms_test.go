package bucket

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/quorate/quorate/internal/record"
)

const kmsKeyURL = "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"

// fakeKMS is Cloud KMS as a network. Its seal is a word before what is sealed.
type fakeKMS struct {
	// plan says how the nth question is answered: with a status, 0 for an error of the network, -1 for no answer.
	plan  func(n int) int
	asked int
}

func (f *fakeKMS) RoundTrip(req *http.Request) (*http.Response, error) {
	n := f.asked
	f.asked++
	status := f.plan(n)
	switch status {
	case 0:
		return nil, errors.New("connection refused")
	case -1:
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	body := fmt.Sprintf(`{"error":{"code":%d,"message":"injected"}}`, status)
	if status == http.StatusOK {
		answer, err := f.answer(req)
		if err != nil {
			return nil, err
		}
		body = answer
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

func (f *fakeKMS) answer(req *http.Request) (string, error) {
	var question map[string][]byte // base64 in JSON
	if err := json.NewDecoder(req.Body).Decode(&question); err != nil {
		return "", err
	}
	url, isSeal := strings.CutSuffix(req.Method+" "+req.URL.String(), ":encrypt")
	url, isOpen := strings.CutSuffix(url, ":decrypt")
	answer := map[string][]byte{}
	switch {
	case url != "POST https://cloudkms.googleapis.com/v1/projects/p/locations/l/keyRings/r/cryptoKeys/k":
		return "", fmt.Errorf("asked %s %s", req.Method, req.URL)
	case isSeal:
		answer["ciphertext"] = append([]byte("sealed:"), question["plaintext"]...)
	case isOpen:
		answer["plaintext"] = bytes.TrimPrefix(question["ciphertext"], []byte("sealed:"))
	}
	data, err := json.Marshal(answer)
	return string(data), err
}

// kmsBundles are sealed by a key of Cloud KMS that answers as the plan says.
func kmsBundles(t *testing.T, plan func(n int) int) (*Bundles, *fakeKMS) {
	t.Helper()
	f := &fakeKMS{plan: plan}
	s := newMemory().store()
	s.client = &http.Client{Transport: f}
	return openBundles(t, s, kmsKeyURL), f
}

func TestBundlesSealedByCloudKMS(t *testing.T) {
	for name, answers := range map[string][]int{
		"at once": {}, "busy": {503, 429, 500}, "a network that breaks": {0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, f := kmsBundles(t, func(n int) int {
				if n < len(answers) {
					return answers[n]
				}
				return http.StatusOK
			})
			got, won, err := b.Create(t.Context(), 1, []byte("keys"))
			if err != nil || !won || string(got) != "keys" || f.asked != len(answers)+2 {
				t.Errorf("%s: %q, won %t, %v, asked %d times", name, got, won, err, f.asked)
			}
			sealed, err := b.store.ReadSealed(t.Context(), 1)
			if err != nil || string(sealed) != "sealed:quorate bundle c1 1\nkeys" {
				t.Errorf("%s: the record holds %q, %v", name, sealed, err)
			}
		})
	}
}

// A key that has answered says something of the bundle. One that could not be asked, does not know who asks, or refuses
// the caller (a permission that was just granted is late by minutes) does not.
func TestWhoseFaultAnErrorOfCloudKMSIs(t *testing.T) {
	for status, isKeys := range map[int]bool{
		400: true, 404: true, 401: false, 403: false, 429: false, 500: false, 503: false, 0: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			b, _ := kmsBundles(t, func(int) int { return status })
			_, _, createErr := b.Create(t.Context(), 1, []byte("keys"))
			if _, _, err := b.store.CreateSealed(t.Context(), 1, []byte("sealed:")); err != nil {
				t.Fatal(err)
			}
			_, readErr := b.Read(t.Context(), 1)
			for _, err := range []error{createErr, readErr} {
				if err == nil || errors.Is(err, ErrSealKey) != isKeys || errors.Is(err, record.ErrRecord) {
					t.Errorf("%d: %v: want ErrSealKey %t", status, err, isKeys)
				}
			}
			if readErr != nil && strings.Contains(readErr.Error(), "does not open it") != isKeys {
				t.Errorf("%d: %v", status, readErr)
			}
			if status == 403 && !strings.Contains(fmt.Sprint(readErr), "or not yet") {
				t.Errorf("%d: %v: want a permission that may be late", status, readErr)
			}
		})
	}
}

// narrow is the error that a VM's client makes of a refusal, where the VM's access scopes are too narrow.
type narrow struct{ error }

func (narrow) NarrowScopes()   {}
func (n narrow) Unwrap() error { return n.error }

// Who lacks a scope is not sent to IAM: neither for the record nor for the key.
func TestNarrowScopesAreNotExplainedByIAM(t *testing.T) {
	denied := &googleapi.Error{Code: http.StatusForbidden, Message: "the VM lacks a scope"}
	for name, explain := range map[string]func(error) error{
		"the record": func(err error) error { return explain("b", err) }, "the key": keyAnswer} {
		err := explain(narrow{denied})
		if text := err.Error(); strings.Contains(text, "service account") || !strings.Contains(text, "lacks a scope") ||
			status(err) != http.StatusForbidden || errors.Is(err, ErrSealKey) {
			t.Errorf("%s: %v", name, err)
		}
		if err := explain(denied); !strings.Contains(err.Error(), "service account") {
			t.Errorf("%s, with all scopes: %v", name, err)
		}
	}
}

func TestAKeyServerThatIsSilentIsLeftInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := kmsBundles(t, func(int) int { return -1 })
		begin := time.Now()
		_, _, err := b.Create(t.Context(), 1, []byte("keys"))
		if d := time.Since(begin); d != sealTimeout || errors.Is(err, ErrSealKey) {
			t.Errorf("gave up after %s: %v", d, err)
		}
		if !strings.Contains(fmt.Sprint(err), "no answer within") {
			t.Error(err)
		}
	})
}
