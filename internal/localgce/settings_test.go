package localgce_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/api/cloudkms/v1"
	"google.golang.org/api/cloudresourcemanager/v1"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/iam/v1"
	"google.golang.org/api/storage/v1"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/settings"
)

// Each answer has the fields of Google's own structs and no others: a name that is misspelled would be no setting.
func TestSettingsHaveTheFieldsOfGooglesAPIs(t *testing.T) {
	project := settings.Whole("demo")
	project.Addresses = []map[string]any{{"name": "a", "address": "203.0.113.10", "addressType": "EXTERNAL"}}
	project.Routers = []map[string]any{{"name": "r", "nats": []any{map[string]any{"name": "n"}}}}
	served, err := buckets.Open(t.TempDir(), project)
	if err != nil {
		t.Fatal(err)
	}
	vm := instance.VM{ID: 1, Name: "master-1", Zone: "us-central1-a", Status: "RUNNING",
		DataDisk: instance.Disk{ID: 2, Name: "master-1-data", Bytes: 4 << 30}}
	server := httptest.NewServer(localgce.NewAPIs(func() []instance.VM { return []instance.VM{vm} }, served, project))
	defer server.Close()
	const root = "/compute/v1/projects/" + localgce.ProjectID
	const ring = "/v1/projects/" + localgce.ProjectID + "/locations/l/keyRings/r"
	for path, into := range map[string]any{
		"/storage/v1/b/" + localgce.BucketName:                                                 &storage.Bucket{},
		"/storage/v1/b/" + localgce.BucketName + "/iam":                                        &storage.Policy{},
		"/storage/v1/b/" + localgce.BucketName + "/iam/testPermissions?permissions=a":          &storage.TestIamPermissionsResponse{},
		"/v1/projects/" + localgce.ProjectID + "/serviceAccounts/" + instance.MastersAccount(): &iam.ServiceAccount{},
		root: &compute.Project{},
		root + "/zones/us-central1-a/instances/master-1":               &compute.Instance{},
		root + "/global/firewalls":                                     &compute.FirewallList{},
		root + "/regions/us-central1/subnetworks":                      &compute.SubnetworkList{},
		root + "/regions/us-central1/routers":                          &compute.RouterList{},
		root + "/regions/us-central1/addresses":                        &compute.AddressList{},
		ring + "/cryptoKeys/k":                                         &cloudkms.CryptoKey{},
		ring + "/cryptoKeys/k:getIamPolicy":                            &cloudkms.Policy{},
		ring + ":getIamPolicy":                                         &cloudkms.Policy{},
		"/v1/projects/" + localgce.ProjectID + ":getIamPolicy":         &cloudresourcemanager.Policy{},
		"/v1/roles/cloudkms.cryptoKeyEncrypterDecrypter":               &iam.Role{},
		"/v1/projects/" + localgce.ProjectID + "/roles/quorateCompute": &iam.Role{},
	} {
		res, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", path, res.Status, err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%s: %v: %s", path, err, text)
		}
	}
}

func TestAnAPIThatIsOffSaysSo(t *testing.T) {
	off := &settings.Settings{Disabled: []string{"compute.googleapis.com"}}
	served, err := buckets.Open(t.TempDir(), off)
	if err != nil {
		t.Fatal(err)
	}
	apis := localgce.NewAPIs(func() []instance.VM { return nil }, served, off)
	w := httptest.NewRecorder()
	apis.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/compute/v1/projects/"+localgce.ProjectID+"/zones", nil))
	if w.Code != http.StatusForbidden || !bytes.Contains(w.Body.Bytes(), []byte("accessNotConfigured")) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
