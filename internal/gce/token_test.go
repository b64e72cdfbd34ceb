package gce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// guarded is a server that wants one token, and remembers what it was sent.
type guarded struct {
	wants string
	// auths are the headers of the requests, in order; bodies what came with those that were let in.
	auths, bodies []string
}

func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	auth := req.Header.Get("Authorization")
	g.auths = append(g.auths, auth)
	body := ""
	if req.Body != nil {
		data, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = string(data)
		req.Body.Close()
	}
	code := http.StatusUnauthorized
	if g.wants == "" || auth == "Bearer "+g.wants {
		code = http.StatusOK
		g.bodies = append(g.bodies, body)
	}
	return &http.Response{StatusCode: code, Request: req, Body: http.NoBody}, nil
}

// ask sends a request as the VM's service account.
func ask(t *testing.T, s *serviceAccount, body io.Reader) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://compute.googleapis.com/", body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	if req.Header.Get("Authorization") != "" {
		t.Error("the caller's own request was changed")
	}
	return res.StatusCode, nil
}

func tokenAnswer(token string) string {
	return fmt.Sprintf(`{"access_token":%q,"expires_in":3599,"token_type":"Bearer"}`, token)
}

func TestTokenIsKeptUntilItEnds(t *testing.T) {
	t.Parallel()
	f, g := newFakeMetadata(t), &guarded{}
	s := newServiceAccount(f.dial(time.Second), g)
	for _, step := range []struct{ offered, want string }{{"one", "one"}, {"two", "one"}, {"two", "two"}} {
		if step.want == "two" {
			s.until = time.Now()
		}
		f.set(tokenPath, tokenAnswer(step.offered))
		if _, err := ask(t, s, nil); err != nil || g.auths[len(g.auths)-1] != "Bearer "+step.want {
			t.Errorf("sent %q, %v: want %s", g.auths, err, step.want)
		}
	}
	if left := time.Until(s.until); left < 54*time.Minute || left > 56*time.Minute {
		t.Errorf("it is kept for %s", left)
	}
}

// A token can be refused before its time: the VM was suspended, or the token was revoked.
func TestARefusedTokenIsForgotten(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]func() io.Reader{
		"no body":                      func() io.Reader { return nil },
		"a body":                       func() io.Reader { return strings.NewReader("question") },
		"a body that can be read once": func() io.Reader { return io.MultiReader(strings.NewReader("question")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, g := newFakeMetadata(t), &guarded{wants: "one"}
			s := newServiceAccount(f.dial(time.Second), g)
			f.set(tokenPath, tokenAnswer("one"))
			if code, err := ask(t, s, body()); code != http.StatusOK || err != nil {
				t.Fatalf("got %d, %v", code, err)
			}
			f.set(tokenPath, tokenAnswer("two"))
			g.wants = "two"
			code, err := ask(t, s, body())
			if name == "a body that can be read once" { // the next request has the new token
				if code != http.StatusUnauthorized || err != nil {
					t.Fatalf("got %d, %v", code, err)
				}
				code, err = ask(t, s, body())
			}
			if code != http.StatusOK || err != nil {
				t.Fatalf("with another token: got %d, %v", code, err)
			}
			if n := len(g.bodies); g.bodies[n-1] != g.bodies[0] {
				t.Errorf("the second try brought %q, want %q", g.bodies[n-1], g.bodies[0])
			}
		})
	}
}

// A server that refuses every token is asked twice at most, and the answer is its own.
func TestARefusalOfEveryTokenIsTheAnswer(t *testing.T) {
	t.Parallel()
	f, g := newFakeMetadata(t), &guarded{wants: "none that is given"}
	s := newServiceAccount(f.dial(time.Second), g)
	f.set(tokenPath, tokenAnswer("one"))
	if code, err := ask(t, s, nil); code != http.StatusUnauthorized || err != nil || len(g.auths) != 1 {
		t.Errorf("one token: got %d, %v after %d tries", code, err, len(g.auths))
	}
	f.set(tokenPath, tokenAnswer("two"))
	if code, err := ask(t, s, nil); code != http.StatusUnauthorized || err != nil || len(g.auths) != 3 {
		t.Errorf("two tokens: got %d, %v after %d tries in all", code, err, len(g.auths))
	}
}

// A body that is opened to be sent again is sent, and thereby closed.
func TestARefusalOpensNoBodyThatIsNotSent(t *testing.T) {
	t.Parallel()
	f, g := newFakeMetadata(t), &guarded{wants: "none that is given"}
	s := newServiceAccount(f.dial(time.Second), g)
	for want, token := range []string{"one", "two"} { // the first has no other that could be tried
		f.set(tokenPath, tokenAnswer(token))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://compute.googleapis.com/",
			strings.NewReader("question"))
		if err != nil {
			t.Fatal(err)
		}
		opened, getBody := 0, req.GetBody
		req.GetBody = func() (io.ReadCloser, error) { opened++; return getBody() }
		if _, err := s.RoundTrip(req); err != nil || opened != want {
			t.Errorf("token %s: opened %d more, %v: want %d", token, opened, err, want)
		}
	}
}

// A metadata server that is away when the first token is needed is asked again, in the same process.
func TestAMetadataServerThatWasAwayIsAskedAgain(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	f.set(tokenPath, tokenAnswer("one"))
	f.setFault(func(w http.ResponseWriter, _ *http.Request) bool { panic(http.ErrAbortHandler) })
	s := newServiceAccount(f.dial(time.Second), &guarded{wants: "one"})
	if code, err := ask(t, s, nil); err == nil {
		t.Fatalf("away: got %d", code)
	}
	f.setFault(nil)
	if code, err := ask(t, s, nil); code != http.StatusOK || err != nil {
		t.Errorf("back: got %d, %v", code, err)
	}
}

// A server that takes the question for a token and says nothing holds nobody up: neither the one who asks for longer
// than a try, nor those who wait for the answer for longer than they have.
func TestWaitingForATokenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	asked := make(chan struct{})
	f.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
		close(asked)
		<-r.Context().Done()
		return true
	})
	s := newServiceAccount(f.dial(6*time.Second), &guarded{})
	first := make(chan error)
	begin := time.Now()
	go func() {
		_, err := ask(t, s, nil)
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.current(ctx, "")
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 800*time.Millisecond {
		t.Errorf("one who waits: %v after %s", err, time.Since(begin))
	}
	if err := <-first; !errors.Is(err, errNoAnswer) || time.Since(begin) > 3*time.Second {
		t.Errorf("one who asks: %v after %s, want no answer within a second", err, time.Since(begin))
	}
}

func TestTokenThatIsNone(t *testing.T) {
	t.Parallel()
	f := newFakeMetadata(t)
	m := f.dial(time.Second)
	for _, answer := range []string{"", "secret", `{"access_token":"secret"}`, `{"expires_in":5}`,
		`{"access_token":"secret","expires_in":-1}`} {
		f.set(tokenPath, answer)
		g := &guarded{}
		_, err := ask(t, newServiceAccount(m, g), nil)
		if err == nil || len(g.auths) != 0 || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: sent %q, %v", answer, g.auths, err)
		}
	}
}

// A document can name a stand-in for one of Google's services. No token crosses a network in the clear on the way to
// it.
func TestWhereATokenMayGo(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct{ vm, user bool }{
		"https://storage.googleapis.com/storage/v1/":   {true, true},
		"https://cloudkms.googleapis.com/v1/":          {true, true},
		"https://storage-x.p.googleapis.com/":          {true, true},
		"https://stand-in.example/":                    {true, false},
		"https://storage.googleapis.com.evil.example/": {true, false},
		"https://evilgoogleapis.com/":                  {true, false},
		"http://storage.googleapis.com/":               {false, false},
		"http://stand-in.example/":                     {false, false},
		"http://198.51.100.7/":                         {false, false},
		"http://[2600:1900::5]/":                       {false, false},
		"http://127.0.0.1:4443/":                       {true, false},
		"http://[::1]:4443/":                           {true, false},
		"http://10.240.0.1:8080/compute/v1/":           {true, false},
		"http://169.254.169.1/":                        {true, false},
		"http://[fd20::1]/":                            {true, false},
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if vm, user := mayCarryToken(u), isGoogles(u); vm != want.vm || user != want.user {
			t.Errorf("%s: a VM's token %t, a person's %t: want %+v", address, vm, user, want)
		}
	}
}

// What carries no token is sent all the same: the server at the other end says what it wants.
func TestARequestThatMayCarryNoTokenHasNone(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/absent")
	for name, c := range map[string]func(http.RoundTripper) http.RoundTripper{
		"a VM's": func(next http.RoundTripper) http.RoundTripper {
			return newServiceAccount(newFakeMetadata(t).dial(time.Second), next)
		},
		"a person's": func(next http.RoundTripper) http.RoundTripper { return &userCredentials{next: next} },
	} {
		g := &guarded{}
		req := httptest.NewRequest(http.MethodGet, "http://stand-in.example/", nil)
		if res, err := c(g).RoundTrip(req); err != nil || res.StatusCode != http.StatusOK || g.auths[0] != "" {
			t.Errorf("%s: sent %q, %v", name, g.auths, err)
		}
	}
}

// One who follows a redirect would send the token to whoever it names.
func TestNoClientFollowsARedirect(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			t.Errorf("%s was asked", r.URL)
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	f := newFakeMetadata(t)
	f.set(tokenPath, tokenAnswer("one"))
	for name, c := range map[string]*http.Client{"a VM's": f.dial(time.Second).Client(), "a person's": UserClient()} {
		res, err := c.Get(server.URL)
		if err != nil || res.StatusCode != http.StatusFound {
			t.Errorf("%s: got %v, %v", name, res, err)
		}
	}
}

// A VM without a service account is told so at once, in one line.
func TestComputeWithoutServiceAccount(t *testing.T) {
	t.Parallel()
	client := newFakeMetadata(t).dial(time.Second).Client()
	c, err := NewCompute(ComputeConfig{Project: "demo", Cluster: "prod", Client: client, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := c.VMs(t.Context())
	if got != nil || err == nil ||
		!strings.Contains(fmt.Sprint(err), `"instance/service-accounts/default/token" not defined`) {
		t.Errorf("got %v, %v", got, err)
	}
}
