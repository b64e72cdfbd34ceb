package compute

import (
	"net/http/httptest"
	"testing"
)

// The names of permissions are those of Google's list of them, as docs/iam.md has them.
func TestWhatReadingTakes(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"":                                     "compute.projects.get",
		"/zones":                               "compute.zones.list",
		"/zones/z":                             "compute.zones.get",
		"/zones/z/instances":                   "compute.instances.list",
		"/aggregated/instances":                "compute.instances.list",
		"/zones/z/instances/17":                "compute.instances.get",
		"/aggregated/disks":                    "compute.disks.list",
		"/zones/z/disks/d":                     "compute.disks.get",
		"/zones/z/networkEndpointGroups/g":     "compute.networkEndpointGroups.get",
		"/zones/z/operations/o":                "compute.zoneOperations.get",
		"/regions/r/operations/o":              "compute.regionOperations.get",
		"/global/operations/o":                 "compute.globalOperations.get",
		"/regions/r/backendServices/b":         "compute.regionBackendServices.get",
		"/regions/r/healthChecks/h":            "compute.regionHealthChecks.get",
		"/regions/r/forwardingRules/f":         "compute.forwardingRules.get",
		"/global/firewalls":                    "compute.firewalls.list",
		"/global/images/i":                     "compute.images.get",
		"/global/images/family/quorate-master": "compute.images.getFromFamily",
	} {
		got := reading(httptest.NewRequest("GET", "/compute/v1/projects/p"+path, nil))
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q takes %v, want %s", path, got, want)
		}
	}
	if got := reading(httptest.NewRequest("POST", "/compute/v1/projects/p/zones/z/instances", nil)); got != nil {
		t.Errorf("a change takes %v by its path", got)
	}
}
