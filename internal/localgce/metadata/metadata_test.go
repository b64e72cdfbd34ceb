package metadata_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/metadata"

	"github.com/quorate/quorate/internal/localgce/instance"
	local "github.com/quorate/quorate/internal/localgce/metadata"
)

// master is a VM with a data disk.
func master() instance.VM {
	return instance.VM{
		ID: 4902571698253978401, Name: "master-1", Zone: "us-central1-a", Status: "RUNNING",
		Address: netip.MustParseAddr("10.240.0.2"), Forwarded: []netip.Addr{netip.MustParseAddr("10.240.0.100")},
		Attributes: map[string]string{"quorate-cluster": "name: demo\n", "startup-script": "#!/bin/sh"},
		Labels:     map[string]string{"quorate-cluster": "demo"},
		Created:    time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		DataDisk:   instance.Disk{ID: 17, Name: "master-1-data", Bytes: 4 << 30},
	}
}

func metadataServer(t *testing.T) (*local.Server, string) {
	m := local.New(master())
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	return m, s.URL
}

func TestGooglesClientReadsTheMetadata(t *testing.T) {
	_, url := metadataServer(t)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(url, "http://"))
	c, ctx := metadata.NewClient(nil), t.Context()
	for want, get := range map[string]func(context.Context) (string, error){
		"4902571698253978401": c.InstanceIDWithContext,
		"master-1":            c.InstanceNameWithContext,
		"us-central1-a":       c.ZoneWithContext,
		instance.ProjectID:    c.ProjectIDWithContext,
		"271828182845":        c.NumericProjectIDWithContext,
		"10.240.0.2":          c.InternalIPWithContext,
		"master-1.us-central1-a.c.quorate-local.internal": c.HostnameWithContext,
	} {
		if got, err := get(ctx); got != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	names, err := c.InstanceAttributesWithContext(ctx)
	if err != nil || strings.Join(names, " ") != "quorate-cluster startup-script" {
		t.Errorf("attributes: %q, %v", names, err)
	}
	if v, err := c.InstanceAttributeValueWithContext(ctx, "quorate-cluster"); v != "name: demo\n" || err != nil {
		t.Errorf("quorate-cluster: %q, %v", v, err)
	}
	var absent metadata.NotDefinedError
	if _, err := c.InstanceAttributeValueWithContext(ctx, "kube-env"); !errors.As(err, &absent) {
		t.Errorf("an absent attribute gives %v, not NotDefinedError", err)
	}
	if scopes, err := c.ScopesWithContext(ctx, ""); err != nil || len(scopes) != 1 {
		t.Errorf("scopes: %q, %v", scopes, err)
	}
}

func TestGooglesClientIsWokenByAChange(t *testing.T) {
	m, url := metadataServer(t)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(url, "http://"))
	enough := errors.New("enough")
	var seen []string
	err := metadata.NewClient(nil).SubscribeWithContext(t.Context(), "instance/attributes/quorate-cluster",
		func(_ context.Context, v string, ok bool) error {
			seen = append(seen, v)
			if !ok {
				return enough
			}
			next := master()
			if len(seen) == 1 {
				next.Attributes["quorate-cluster"] = "name: other"
			} else {
				delete(next.Attributes, "quorate-cluster")
			}
			m.Set(next)
			return nil
		})
	if !errors.Is(err, enough) || strings.Join(seen, "|") != "name: demo\n|name: other|" {
		t.Errorf("saw %q, %v", seen, err)
	}
}

// get asks with the flavor header and follows no redirect.
func get(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Metadata-Flavor", "Google")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestMetadataPaths(t *testing.T) {
	_, url := metadataServer(t)
	for _, c := range []struct {
		path string
		code int
		body string // contained in the answer
	}{
		{"/", 200, "computeMetadata/\n"},
		{"/computeMetadata/v1/", 200, "instance/\nproject/\n"},
		{"/computeMetadata/v1/instance", 301, ""},
		{"/computeMetadata/v1/instance/", 200, "attributes/\n"},
		{"/computeMetadata/v1/instance/id", 200, "4902571698253978401"},
		{"/computeMetadata/v1/instance/name?alt=json", 200, `"master-1"`},
		{"/computeMetadata/v1/instance/zone", 200, "projects/271828182845/zones/us-central1-a"},
		{"/computeMetadata/v1/instance/maintenance-event", 200, "NONE"},
		{"/computeMetadata/v1/instance/network-interfaces/0/ip", 200, "10.240.0.2"},
		{"/computeMetadata/v1/instance/network-interfaces/1/ip", 404, ""},
		{"/computeMetadata/v1/instance/network-interfaces/0/forwarded-ips", 200, "10.240.0.100"},
		{"/computeMetadata/v1/instance/disks/1/device-name", 200, "quorate-data"},
		{"/computeMetadata/v1/instance/?recursive=true", 200, `"maintenanceEvent":"NONE"`},
		{"/computeMetadata/v1/instance?recursive=true", 200, `"id":4902571698253978401`},
		{"/computeMetadata/v1/instance/attributes/?recursive=true", 200,
			`{"quorate-cluster":"name: demo\n","startup-script":"#!/bin/sh"}`},
		{"/computeMetadata/v1/instance/?recursive=true&alt=text", 200, "attributes/startup-script #!/bin/sh\n"},
		{"/computeMetadata/v1/instance/service-accounts/default/token", 200, `"token_type":"Bearer"`},
		{"/computeMetadata/v1/instance/service-accounts/default/email", 200,
			"271828182845-compute@developer.gserviceaccount.com"},
		{"/computeMetadata/v1/project/numeric-project-id", 200, "271828182845"},
		{"/computeMetadata/v1/nothing", 404, "404"},
		{"/computeMetadata/v2/", 404, ""},
	} {
		resp, body := get(t, url+c.path)
		if resp.StatusCode != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s: %d %q; want %d with %q", c.path, resp.StatusCode, body, c.code, c.body)
		}
		if resp.Header.Get("Metadata-Flavor") != "Google" || !strings.HasPrefix(resp.Header.Get("Server"),
			"Metadata Server") {
			t.Errorf("%s: headers %v", c.path, resp.Header)
		}
	}
}

func TestMetadataRefusesRequestsThatCouldBeForged(t *testing.T) {
	_, url := metadataServer(t)
	for name, headers := range map[string][]string{
		"without the flavor": {"Metadata-Flavor", ""},
		"forwarded":          {"X-Forwarded-For", "192.0.2.1"},
	} {
		if resp, _ := get(t, url+"/computeMetadata/v1/instance/id",
			headers...); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}

func TestMetadataWaitsForAChange(t *testing.T) {
	m, url := metadataServer(t)
	key := url + "/computeMetadata/v1/instance/attributes/quorate-cluster"
	resp, _ := get(t, key)
	etag := resp.Header.Get("ETag")

	if again, _ := get(t, key+"?wait_for_change=true&timeout_sec=0&last_etag="+etag); again.Header.Get("ETag") != etag {
		t.Error("the time-out changes the ETag of what is the same")
	}
	if _, body := get(t, key+"?wait_for_change=true&last_etag=0"); body != "name: demo\n" {
		t.Errorf("an old ETag does not return at once: %q", body)
	}
	go func() {
		other := master()
		other.Maintenance = "MIGRATE_ON_HOST_MAINTENANCE" // not what is waited for
		m.Set(other)
		other.Attributes["quorate-cluster"] = "name: next"
		m.Set(other)
	}()
	if resp, body := get(t, key+"?wait_for_change=true&last_etag="+etag); body != "name: next" ||
		resp.Header.Get("ETag") == etag {
		t.Errorf("woken with %q", body)
	}
}
