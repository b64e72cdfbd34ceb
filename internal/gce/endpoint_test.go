package gce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

const groupFolder = "/compute/v1/projects/demo/zones/us-central1-a/networkEndpointGroups/prod/"

// endpointGroup is a group whose endpoints are "NAME ADDRESS", on pages of one each. The next orders are answered by
// what refuse has.
func endpointGroup(t *testing.T, refuse string, there ...string) (c *Operator, ordered *[]string) {
	t.Helper()
	ordered = &[]string{}
	return fakeAPI(t, 5*time.Second, func(w http.ResponseWriter, r *http.Request, _ int) {
		call := strings.TrimPrefix(r.URL.Path, groupFolder)
		if call == "listNetworkEndpoints" {
			send(w, 200, endpointPage(there, r.URL.Query().Get("pageToken")))
			return
		}
		var asked struct {
			NetworkEndpoints []struct{ Instance, IPAddress string }
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.NetworkEndpoints) != 1 {
			t.Errorf("%s: %+v, %v", call, asked, err)
			return
		}
		e := lastPart(asked.NetworkEndpoints[0].Instance) + " " + asked.NetworkEndpoints[0].IPAddress
		*ordered = append(*ordered, strings.TrimSuffix(call, "NetworkEndpoints")+" "+e)
		if refuse != "" {
			there = slices.DeleteFunc(there, func(x string) bool { return x == e && refuse == "gone meanwhile" })
			send(w, 400, apiError(400, "invalid", refuse))
			return
		}
		there = slices.DeleteFunc(there, func(x string) bool { return x == e })
		if call == "attachNetworkEndpoints" {
			there = append(there, e)
		}
		send(w, 200, over)
	}), ordered
}

// endpointPage is the page of a token: a number.
func endpointPage(there []string, token string) string {
	n, next := 0, ""
	_, _ = fmt.Sscan(token, &n)
	if n+1 < len(there) {
		next = fmt.Sprintf(`,"nextPageToken":"%d"`, n+1)
	}
	item := ""
	if n < len(there) {
		name, address, _ := strings.Cut(there[n], " ")
		item = fmt.Sprintf(`{"networkEndpoint":{"instance":%q,"ipAddress":%q}}`, name, address)
	}
	return `{"kind":"compute#networkEndpointGroupsListNetworkEndpoints","items":[` + item + `]` + next + `}`
}

// Of the group only what has the VM's own name is touched: what a former VM of this name has left goes.
func TestOnlyTheOwnEndpointIsTouched(t *testing.T) {
	a := Endpoint{replica.Place{Zone: "us-central1-a", Name: "a"}, netip.MustParseAddr("10.0.0.1")}
	for name, tc := range map[string]struct {
		there, attach, detach []string
	}{
		"an empty group":               {nil, []string{"attach a 10.0.0.1"}, nil},
		"others alone":                 {[]string{"b 10.0.0.2", "c 10.0.0.1"}, []string{"attach a 10.0.0.1"}, nil},
		"it is there, on a later page": {[]string{"b 10.0.0.2", "a 10.0.0.1"}, nil, []string{"detach a 10.0.0.1"}},
		"a former VM's address": {[]string{"a 10.0.0.9", "b 10.0.0.2"},
			[]string{"detach a 10.0.0.9", "attach a 10.0.0.1"}, []string{"detach a 10.0.0.9"}},
		"an instance's URL": {[]string{"https://compute/projects/demo/zones/us-central1-a/instances/a 10.0.0.1"}, nil,
			[]string{"detach a 10.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, ordered := endpointGroup(t, "", slices.Clone(tc.there)...)
			did, err := c.Attach(t.Context(), "prod", a)
			if err != nil || did != (tc.attach != nil) || !slices.Equal(*ordered, tc.attach) {
				t.Errorf("attach: %v, %v, ordered %q", did, err, *ordered)
			}
			c, ordered = endpointGroup(t, "", slices.Clone(tc.there)...)
			did, err = c.Detach(t.Context(), "prod", a.Place)
			if err != nil || did != (tc.detach != nil) || !slices.Equal(*ordered, tc.detach) {
				t.Errorf("detach: %v, %v, ordered %q", did, err, *ordered)
			}
		})
	}
}

// A refusal counts unless the endpoint is gone all the same.
func TestADetachmentThatIsRefused(t *testing.T) {
	for refuse, want := range map[string]string{"gone meanwhile": "", "the group is read-only": "read-only"} {
		c, _ := endpointGroup(t, refuse, "a 10.0.0.1")
		_, err := c.Detach(t.Context(), "prod", replica.Place{Zone: "us-central1-a", Name: "a"})
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", refuse, err)
		}
	}
}

// What is not a whole list attaches nothing.
func TestAListOfEndpointsIsWholeOrAnError(t *testing.T) {
	for name, body := range map[string]string{
		"another kind": `{"kind":"compute#operation"}`,
		"a warning": `{"kind":"compute#networkEndpointGroupsListNetworkEndpoints","warning":{"code":"UNREACHABLE",` +
			`"message":"x"}}`,
		"no address": `{"kind":"compute#networkEndpointGroupsListNetworkEndpoints","items":[{"networkEndpoint":` +
			`{"instance":"a"}}]}`,
	} {
		c := fakeAPI(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request, _ int) {
			if !strings.HasSuffix(r.URL.Path, "listNetworkEndpoints") {
				t.Errorf("%s: asked for %s", name, r.URL.Path)
			}
			send(w, 200, body)
		})
		e := Endpoint{replica.Place{Zone: "us-central1-a", Name: "a"}, netip.MustParseAddr("10.0.0.1")}
		if did, err := c.Attach(t.Context(), "prod", e); err == nil || did {
			t.Errorf("%s: %v, %v", name, did, err)
		}
	}
}
